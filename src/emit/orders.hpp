// In which order the elements of the tile lie before each stage, so that as few bytes as possible are copied.
#pragma once

#include "src/emit/stages.hpp"

namespace reshard {

/// The digits that one stage runs on.
struct Chosen {
    Order order;                        ///< of the tile when it runs: what it takes is in front
    std::vector<std::size_t> rotation;  ///< the stage's members in the order of its group
};

/// One choice for each stage, and what all copies cost: bytes, weighed by how long their runs are.
struct Orders {
    std::vector<Chosen> choices;
    Index cost = 0;
};

/// The tile's extents at both ends, and the bytes of one element.
struct TileEnds {
    std::vector<Index> source;
    std::vector<Index> target;
    Index bytes = 1;
};

[[nodiscard]] Orders choose_orders(const std::vector<Stage>& stages, const TileEnds& ends);

/// The same, after gathers of several dimensions have become one for each, the innermost first, where that saves copies
/// of more than a mebibyte: what is gathered in front lies where it belongs.
[[nodiscard]] Orders split_gathers(std::vector<Stage>& stages, const TileEnds& ends);

/// The orders through which a tile goes from one to another: none between where one transpose does it, else row-major.
/// pre: both of a tile of these extents.
[[nodiscard]] std::vector<Order> way(const Order& from, const Order& to, const std::vector<Index>& extents);

/// The order behind a stage that ran on `before`.
[[nodiscard]] Order behind(const Stage& stage, const Chosen& chosen);

}  // namespace reshard
