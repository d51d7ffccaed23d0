// The memory of a run, and whether any of it overlaps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Memory that a run reads or writes.
struct MemoryRange {
    std::span<const std::byte> bytes;
    std::string name;  ///< in errors: "array 0"
    bool written = false;
};

/// True if there are `needed` bytes, and they are not null.
[[nodiscard]] inline bool fits(std::span<const std::byte> bytes, Index needed) {
    return static_cast<std::uint64_t>(needed) <= bytes.size() && (bytes.data() != nullptr || bytes.empty());
}

/// Adds the first `needed` of `bytes` to the ranges, under the name of `range`. Adds nothing if none are needed.
/// Errors: mismatch if there are fewer, or if they are null.
[[nodiscard]] Result<void> add_range(std::vector<MemoryRange>& ranges, std::span<const std::byte> bytes, Index needed,
                                     MemoryRange range);

/// Fails with Code::mismatch if a range that is written overlaps any other.
[[nodiscard]] Result<void> check_apart(const std::vector<MemoryRange>& ranges);

}  // namespace reshard
