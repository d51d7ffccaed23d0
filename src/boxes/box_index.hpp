// Finds the boxes of a large set that overlap a given box.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/planner/tile.hpp"

namespace reshard {

/// A box of a rank, in memory that outlives the index.
struct NumberedBox {
    Index rank = 0;
    Index number = 0;  ///< among the boxes of the rank
    const Box* box = nullptr;
};

/// A box of a rank that shares elements with another box.
struct CommonBox {
    Index rank = 0;
    Index number = 0;  ///< among the boxes of the rank
    Box common;        ///< the shared elements
};

/// A tree over boxes. They are sorted along a Morton curve through their centers. Each node of the tree bounds eight
/// nodes of the level below. n boxes take O(n log n) to sort. A query takes about log n plus the boxes that it finds.
class BoxIndex {
public:
    BoxIndex() = default;
    /// Indexes these boxes, except empty ones. pre: each has `dims` dimensions.
    BoxIndex(std::vector<NumberedBox> boxes, std::size_t dims);

    /// The boxes that share an element with `box`, by ascending rank and number. Touches nothing but the index.
    [[nodiscard]] std::vector<CommonBox> overlapping(const Box& box) const;

private:
    struct Level {
        std::size_t nodes = 0;
        std::vector<Index> bounds;  // of each node and dimension: begin, end
    };
    void add_level();
    [[nodiscard]] bool touches(const Level& level, std::size_t node, const Box& box) const;
    [[nodiscard]] Box common(std::size_t number, const Box& box) const;

    std::size_t dims_ = 0;
    std::vector<NumberedBox> boxes_;  // along the curve
    std::vector<Level> levels_;       // from the boxes to the root
};

}  // namespace reshard
