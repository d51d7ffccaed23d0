#include "heap.hpp"

#include <malloc.h>

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
#define RESHARD_COUNTS_HEAP 0
#else
#define RESHARD_COUNTS_HEAP 1
#endif

namespace reshard::fuzz {

namespace {
thread_local Index held = 0;
thread_local Index most = 0;
}  // namespace

bool counts_heap() { return RESHARD_COUNTS_HEAP != 0; }

Index heap_begin() { return most = held; }

Index heap_most() { return most; }

#if RESHARD_COUNTS_HEAP
namespace {

void* counted(void* at) {
    if (at != nullptr) held += static_cast<Index>(::malloc_usable_size(at));
    if (held > most) most = held;
    return at;
}

void leave(void* at) {
    if (at != nullptr) held -= static_cast<Index>(::malloc_usable_size(at));
}

}  // namespace
#endif

}  // namespace reshard::fuzz

#if RESHARD_COUNTS_HEAP
// These replace the functions of the C library for the program and for all libraries that it loads.
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* at, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* at);

void* malloc(std::size_t bytes) { return reshard::fuzz::counted(__libc_malloc(bytes)); }

void* calloc(std::size_t count, std::size_t bytes) { return reshard::fuzz::counted(__libc_calloc(count, bytes)); }

void* realloc(void* at, std::size_t bytes) {
    reshard::fuzz::leave(at);
    void* const made = __libc_realloc(at, bytes);
    if (made == nullptr && bytes > 0) (void)reshard::fuzz::counted(at);  // `at` stays
    return reshard::fuzz::counted(made);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
    return reshard::fuzz::counted(__libc_memalign(alignment, bytes));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** at, std::size_t alignment, std::size_t bytes) {
    *at = memalign(alignment, bytes);
    return *at == nullptr ? ENOMEM : 0;
}

void free(void* at) {
    reshard::fuzz::leave(at);
    __libc_free(at);
}
}
#endif
