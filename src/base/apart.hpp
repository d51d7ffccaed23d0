// Whether two ranges of memory overlap.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace reshard {

/// True if no byte is in both.
[[nodiscard]] inline bool apart(std::span<const std::byte> one, std::span<const std::byte> other) {
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    return one.empty() || other.empty() || !before(one.data(), other.data() + other.size()) ||
           !before(other.data(), one.data() + one.size());
}

}  // namespace reshard
