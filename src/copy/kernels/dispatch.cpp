// Chooses the kernels that this processor runs.
#include "src/copy/kernels/dispatch.hpp"

#include <unistd.h>

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace reshard {

namespace avx512 {
extern const CopyKernels kernels;
}
namespace avx2 {
extern const CopyKernels kernels;
}
namespace plain {
extern const CopyKernels kernels;
}

namespace {

Instructions find_instructions() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return Instructions::avx512;
    if (__builtin_cpu_supports("avx2")) return Instructions::avx2;
#endif
    return Instructions::plain;
}

std::vector<const CopyKernels*> find_kernels() {
    std::vector<const CopyKernels*> found;
#if defined(__x86_64__)
    if (instructions() >= Instructions::avx512) found.push_back(&avx512::kernels);
    if (instructions() >= Instructions::avx2) found.push_back(&avx2::kernels);
#endif
    found.push_back(&plain::kernels);
    return found;
}

// The third level of one core, from AMD's list of caches or Intel's. 0 if neither has it. glibc before 2.37 returns
// the sum of all last caches of an AMD processor instead.
std::int64_t third_level_bytes() {
#if defined(__x86_64__)
    for (const unsigned list : {0x8000001dU, 4U}) {
        unsigned type = 0, lines = 0, sets = 0, unused = 0;
        for (unsigned i = 0; __get_cpuid_count(list, i, &type, &lines, &sets, &unused) != 0 && (type & 31) != 0; ++i) {
            if ((type >> 5 & 7) != 3) continue;
            const std::int64_t bytes_of_set = ((lines >> 22) + 1) * ((lines >> 12 & 1023) + 1) * ((lines & 4095) + 1);
            return bytes_of_set * (std::int64_t{sets} + 1);
        }
    }
#endif
    return 0;
}

std::int64_t find_last_cache() {
    std::int64_t bytes = third_level_bytes();
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : std::int64_t{32} << 20;
}

}  // namespace

Instructions instructions() {
    static const Instructions widest = find_instructions();
    return widest;
}

std::span<const CopyKernels* const> all_copy_kernels() {
    static const std::vector<const CopyKernels*> all = find_kernels();
    return all;
}

const CopyKernels& copy_kernels() {
    static const CopyKernels& best = *all_copy_kernels().front();
    return best;
}

void store_fence() {
#if defined(__x86_64__)
    _mm_sfence();
#else
    __sync_synchronize();
#endif
}

std::int64_t last_cache_bytes() {
    static const std::int64_t bytes = find_last_cache();
    return bytes;
}

}  // namespace reshard
