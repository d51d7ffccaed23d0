// The elements that devices lack between two states of a search if sizes do not divide. This is the judge's count
// (src/plan/missing_elements.cpp).
#pragma once

#include <unordered_map>
#include <vector>

#include "synth/search/space.hpp"

namespace reshard {

/// Looks at every device, with the shares of each list of digits worked out once.
class MissingElements {
public:
    /// pre: frame.exact.
    explicit MissingElements(const SearchSpace& frame) : frame_(frame) {}

    /// The most elements of its `wanted` tile that a device does not hold. pre: as many summands.
    [[nodiscard]] Index elements(const State& held, const State& wanted);

private:
    void list_positions();
    /// The place in `intervals_` of the first interval of dimension `dim`, sharded by `list`.
    std::size_t shares(std::size_t dim, List list);
    /// The number that the digits of `list` make at a position.
    [[nodiscard]] Index number(List list, Index position) const;

    const SearchSpace& frame_;
    std::vector<Index> positions_;  // of the devices that differ in the frame's digits
    std::vector<Interval> intervals_;
    std::unordered_map<std::uint64_t, std::size_t> known_;
};

}  // namespace reshard
