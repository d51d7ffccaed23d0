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

/// Block `number` of a dimension cut into blocks of `size` indices. The last blocks may be short or empty.
[[nodiscard]] constexpr Interval block(Index extent, Index size, Index number) {
    // With far more blocks than indices, number * size may not fit 64 bits. The block is past the end then.
    const Index begin = std::min(extent, saturating_multiply(number, size));
    return {begin, std::min(extent, saturating_add(begin, size))};
}

/// A product of intervals, one per dimension, in global indices. A box of rank 0 has one element.
using Box = std::vector<Interval>;

[[nodiscard]] Index count(const Box& box);                ///< elements
[[nodiscard]] Box intersect(const Box& a, const Box& b);  ///< with empty intervals where they do not overlap

/// The indices of one dimension that a tile has. In local memory the intervals lie one after another.
struct Side {
    std::vector<Interval> intervals;          ///< ascending, not touching, not empty
    [[nodiscard]] Index size() const;         ///< number of indices
    [[nodiscard]] Index at(Index own) const;  ///< the index at place `own`. pre: own < size()
    friend bool operator==(const Side&, const Side&) = default;
};

/// The elements that a device holds: a product of sides, one per dimension. If it holds nothing, a side is empty. A
/// layout of rank 0 has no sides; there a device that holds nothing has one side, which is empty (see nothing).
using Tile = std::vector<Side>;

[[nodiscard]] Index count(const Tile& tile);                    ///< elements
[[nodiscard]] Side intersect(const Side& a, const Side& b);     ///< the indices that both have
[[nodiscard]] Side part_of(const Side& side, Interval own);     ///< the indices at places [own.begin, own.end)
[[nodiscard]] Tile intersect(const Tile& a, const Tile& b);     ///< nothing when their ranks differ
[[nodiscard]] Tile nothing(std::size_t rank);                   ///< the tile of a device outside the mesh
[[nodiscard]] bool contains(const Tile& tile, const Box& box);  ///< the box lies in one interval of each dimension
[[nodiscard]] std::vector<Box> boxes_of(const Tile& tile);      ///< its boxes, row-major; none if it is empty
[[nodiscard]] Box as_box(const Tile& tile);                     ///< pre: at most one interval per dimension
[[nodiscard]] Tile as_tile(const Box& box);                     ///< the same elements
[[nodiscard]] std::vector<Index> extents(const Tile& tile);     ///< indices per dimension

}  // namespace reshard
