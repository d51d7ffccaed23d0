#include "support/allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool counts = false;
thread_local int allocations = 0;

}  // namespace

namespace reshard {

void count_allocations() {
    allocations = 0;
    counts = true;
}

int counted_allocations() {
    counts = false;
    return allocations;
}

}  // namespace reshard

// The address sanitizer has its own operators, which must not be mixed with these. It counts nothing.
#if !defined(__SANITIZE_ADDRESS__)
void* operator new(std::size_t bytes) {
    if (counts) ++allocations;
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
