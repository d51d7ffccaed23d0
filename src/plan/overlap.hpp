// The common indices of tiles of two cuts of one dimension.
#pragma once

#include <algorithm>

#include "src/layout/regular_cut.hpp"

namespace reshard {

/// Indices of one dimension that lie in a tile of each of two cuts, by shard numbers.
class Overlap {
public:
    Overlap(const Dim& before, const Dim& after) : held_cut_(before), wanted_cut_(after) {
        if (before.pieces.empty() && after.pieces.empty()) return;
        held_ = sides(before);
        wanted_ = sides(after);
    }
    [[nodiscard]] Index held(Index shard) const { return size_of(held_, held_cut_, shard); }
    [[nodiscard]] Index wanted(Index shard) const { return size_of(wanted_, wanted_cut_, shard); }
    [[nodiscard]] Index common(Index held, Index wanted) const {
        if (!wanted_.empty())
            return intersect(held_[static_cast<std::size_t>(held)], wanted_[static_cast<std::size_t>(wanted)]).size();
        const Interval b = held_cut_.at(held);
        const Interval a = wanted_cut_.at(wanted);
        return std::max<Index>(0, std::min(b.end, a.end) - std::max(b.begin, a.begin));
    }

private:
    [[nodiscard]] static Index size_of(const std::vector<Side>& sides, const RegularCut& cut, Index shard) {
        return sides.empty() ? cut.at(shard).size() : sides[static_cast<std::size_t>(shard)].size();
    }

    // Without pieces the cuts are enough. Else both ends have a list of sides.
    RegularCut held_cut_;
    RegularCut wanted_cut_;
    std::vector<Side> held_;
    std::vector<Side> wanted_;
};

}  // namespace reshard
