// The common indices of tiles of two cuts of one dimension.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"

namespace reshard {

/// Indices of one dimension that lie in a tile of each of two cuts, by shard numbers.
class Overlap {
public:
    Overlap(const Dim& before, const Dim& after)
        : extent_(after.extent), held_block_(block_extent(before)), wanted_block_(block_extent(after)) {
        if (before.pieces.empty() && after.pieces.empty()) return;
        held_ = sides(before);
        wanted_ = sides(after);
    }
    [[nodiscard]] Index held(Index shard) const { return size_of(held_, held_block_, shard); }
    [[nodiscard]] Index wanted(Index shard) const { return size_of(wanted_, wanted_block_, shard); }
    [[nodiscard]] Index common(Index held, Index wanted) const {
        if (!wanted_.empty())
            return intersect(held_[static_cast<std::size_t>(held)], wanted_[static_cast<std::size_t>(wanted)]).size();
        const Interval b = block(extent_, held_block_, held);
        const Interval a = block(extent_, wanted_block_, wanted);
        return std::max<Index>(0, std::min(b.end, a.end) - std::max(b.begin, a.begin));
    }

private:
    [[nodiscard]] Index size_of(const std::vector<Side>& sides, Index size, Index shard) const {
        return sides.empty() ? block(extent_, size, shard).size() : sides[static_cast<std::size_t>(shard)].size();
    }

    Index extent_;
    Index held_block_;
    Index wanted_block_;
    std::vector<Side> held_;
    std::vector<Side> wanted_;
};

}  // namespace reshard
