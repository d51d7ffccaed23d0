// Chooses the kernels for this processor.
#include "src/copy/kernels/dispatch.hpp"

#include <unistd.h>

#include <vector>

#if defined(__x86_64__)
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
    constexpr std::int64_t unknown = std::int64_t{32} << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
    static const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? bytes : unknown;
#else
    return unknown;
#endif
}

}  // namespace reshard
