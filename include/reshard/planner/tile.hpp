// Boxes and tiles of indices.
#pragma once

#include <algorithm>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// A half-open interval of indices; empty when begin == end.
struct Interval {
    Index begin = 0;                                                    ///< the first index
    Index end = 0;                                                      ///< one past the last
    [[nodiscard]] constexpr Index size() const { return end - begin; }  ///< indices
    friend bool operator==(const Interval&, const Interval&) = default;
};

/// Block number `number` of a dimension that is cut into blocks of `size` indices; the last ones may be short or empty.
[[nodiscard]] constexpr Interval block(Index extent, Index size, Index number) {
    // number * size may leave 64 bits when there are far more blocks than indices; it is past the end then.
    const Index begin = std::min(extent, saturating_multiply(number, size));
    return {begin, std::min(extent, saturating_add(begin, size))};
}

/// A product of intervals, one per dimension, in global indices. Rank 0 holds one element.
using Box = std::vector<Interval>;

[[nodiscard]] Index count(const Box& box);                ///< elements
[[nodiscard]] Box intersect(const Box& a, const Box& b);  ///< empty intervals where they miss each other

/// The indices of one dimension that a tile has: ascending intervals that are apart and not empty. In local memory they
/// lie one behind the other.
struct Side {
    std::vector<Interval> intervals;          ///< ascending, apart, not empty
    [[nodiscard]] Index size() const;         ///< indices
    [[nodiscard]] Index at(Index own) const;  ///< its own-th index. pre: own < size()
    friend bool operator==(const Side&, const Side&) = default;
};

/// What a device holds: a product of sides, one per dimension. A device that holds nothing has an empty side. A rank 0
/// layout has no sides, so there a device that holds nothing has one, which is empty (see nothing).
using Tile = std::vector<Side>;

[[nodiscard]] Index count(const Tile& tile);                    ///< elements
[[nodiscard]] Side intersect(const Side& a, const Side& b);     ///< indices that both have
[[nodiscard]] Side part_of(const Side& side, Interval own);     ///< its own indices from one to another
[[nodiscard]] Tile intersect(const Tile& a, const Tile& b);     ///< nothing when their ranks differ
[[nodiscard]] Tile nothing(std::size_t rank);                   ///< the tile of a device outside of the mesh
[[nodiscard]] bool contains(const Tile& tile, const Box& box);  ///< in each dimension within one interval of the tile
[[nodiscard]] std::vector<Box> boxes_of(const Tile& tile);      ///< its boxes, row-major; none when empty
[[nodiscard]] Box as_box(const Tile& tile);                     ///< pre: at most one interval per dimension
[[nodiscard]] Tile as_tile(const Box& box);                     ///< the same elements
[[nodiscard]] std::vector<Index> extents(const Tile& tile);     ///< indices per dimension

}  // namespace reshard
