// Memory in pages of the system. An allocation gets all of it or fails.
#pragma once

#include <sys/mman.h>

#include <utility>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"
#include "src/base/memory.hpp"

namespace reshard::files {

class Pages {
public:
    /// Errors: infeasible.
    [[nodiscard]] static Result<Pages> allocate(Index bytes) {
        if (bytes <= 0) return Pages(nullptr, 0);
        auto claim = MemoryClaim::make(bytes);
        if (!claim) return fail(Code::infeasible, claim.error().message);
        void* const at = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return fail(Code::infeasible, "out of memory");
        // With pages of 2 MiB, if the system gives them, one fault makes the memory of 512 small pages.
        (void)::madvise(at, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
        return Pages(static_cast<std::byte*>(at), bytes);
    }
    Pages(Pages&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
    Pages& operator=(Pages&&) = delete;
    ~Pages() {
        if (at_ != nullptr) ::munmap(at_, static_cast<std::size_t>(bytes_));
    }
    [[nodiscard]] std::byte* at() const { return at_; }

private:
    Pages(std::byte* at, Index bytes) : at_(at), bytes_(bytes) {}
    std::byte* at_;
    Index bytes_;
};

}  // namespace reshard::files
