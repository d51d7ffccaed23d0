// What devices lack where sizes do not divide: the judge's count (src/foreign.cpp) between two states of one search.
#pragma once

#include <unordered_map>
#include <vector>

#include "synth/frame.hpp"

namespace reshard {

/// Looks at every device, with the shares of each list of digits worked out once.
class Foreign {
public:
    /// pre: frame.exact.
    explicit Foreign(const Frame& frame);

    /// The most elements of its `wanted` tile that a device does not hold. pre: the same unreduced digits.
    [[nodiscard]] Index elements(const State& held, const State& wanted);

private:
    /// Of each device, the indices of dimension `dim` that it holds when `list` shards it.
    const Interval* shares(std::size_t dim, List list);

    const Frame& frame_;
    std::vector<Index> positions_;  // of the devices that differ in the frame's digits
    std::unordered_map<std::uint64_t, std::vector<Interval>> known_;
};

}  // namespace reshard
