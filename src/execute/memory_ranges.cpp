#include "src/execute/memory_ranges.hpp"

#include <functional>

#include <fmt/format.h>

namespace reshard {

Result<void> add_range(std::vector<MemoryRange>& ranges, std::span<const std::byte> bytes, Index needed,
                       MemoryRange range) {
    if (static_cast<std::uint64_t>(needed) > bytes.size())
        return fail(Code::mismatch,
                    fmt::format("{} needs {} bytes, the buffer has {}", range.name, needed, bytes.size()));
    if (needed == 0) return {};
    if (bytes.data() == nullptr) return fail(Code::mismatch, fmt::format("{} is null", range.name));
    range.bytes = bytes.first(static_cast<std::size_t>(needed));
    ranges.push_back(std::move(range));
    return {};
}

Result<void> check_apart(const std::vector<MemoryRange>& ranges) {
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        for (std::size_t j = i + 1; j < ranges.size(); ++j) {
            const auto& a = ranges[i];
            const auto& b = ranges[j];
            const bool overlap = before(a.bytes.data(), b.bytes.data() + b.bytes.size()) &&
                                 before(b.bytes.data(), a.bytes.data() + a.bytes.size());
            if (overlap && (a.written || b.written))
                return fail(Code::mismatch, fmt::format("{} and {} overlap in memory", a.name, b.name));
        }
    }
    return {};
}

}  // namespace reshard
