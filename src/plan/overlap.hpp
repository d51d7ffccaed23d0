// What tiles of two cuts of one dimension have in common.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"

namespace reshard {

/// Indices of one dimension that lie in a tile of each of two cuts, by shard numbers.
class Overlap {
public:
    Overlap(const Dim& before, const Dim& after)
        : extent_(after.extent), held_size_(tile_extent(before)), wanted_size_(tile_extent(after)) {
        if (before.pieces.empty() && after.pieces.empty()) return;
        held_ = sides(before);
        wanted_ = sides(after);
    }
    [[nodiscard]] Index held(Index shard) const { return size_of(held_, held_size_, shard); }
    [[nodiscard]] Index wanted(Index shard) const { return size_of(wanted_, wanted_size_, shard); }
    [[nodiscard]] Index common(Index held, Index wanted) const {
        if (!wanted_.empty())
            return intersect(held_[static_cast<std::size_t>(held)], wanted_[static_cast<std::size_t>(wanted)]).size();
        const Interval b = block(extent_, held_size_, held);
        const Interval a = block(extent_, wanted_size_, wanted);
        return std::max<Index>(0, std::min(b.end, a.end) - std::max(b.begin, a.begin));
    }

private:
    [[nodiscard]] Index size_of(const std::vector<Side>& sides, Index size, Index shard) const {
        return sides.empty() ? block(extent_, size, shard).size() : sides[static_cast<std::size_t>(shard)].size();
    }

    Index extent_;
    Index held_size_;
    Index wanted_size_;
    std::vector<Side> held_;
    std::vector<Side> wanted_;
};

}  // namespace reshard
