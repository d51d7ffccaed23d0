// The runs of bytes that two regions of one box have in common.
#pragma once

#include "src/base/odometer.hpp"
#include "src/copy/copy.hpp"

namespace reshard {

/// Calls visit(begin in the first, begin in the second, bytes) for the longest runs that lie in one piece in both
/// regions, in the order of the second. Stops at the first error. pre: as loop_nest.
template <class Visit>
[[nodiscard]] Result<void> for_each_run(const Region& first, const Region& second, const Visit& visit) {
    LoopNest nest = loop_nest(first, second);
    if (nest.empty) return {};
    const Index bytes = take_run(nest);
    std::vector<Index> counts;
    for (const LoopNest::Loop& loop : nest.loops) counts.push_back(loop.extent);
    return for_each_place(counts, [&](std::span<const Index> place) {
        Index in_first = nest.source_offset;
        Index in_second = nest.target_offset;
        for (std::size_t k = 0; k < place.size(); ++k) {
            in_first += place[k] * nest.loops[k].source_stride;
            in_second += place[k] * nest.loops[k].target_stride;
        }
        return visit(in_first, in_second, bytes);
    });
}

}  // namespace reshard
