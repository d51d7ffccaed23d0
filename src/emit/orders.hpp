// Chooses the memory order of the tile before each stage, so that as few bytes as possible are copied.
#pragma once

#include "src/emit/stages.hpp"

namespace reshard {

/// The orders of one stage.
struct Chosen {
    Order order;                        ///< of the tile when it runs; the taken digits are in front
    std::vector<std::size_t> rotation;  ///< the stage's members in the order of its group
};

/// One choice for each stage, and the cost of all copies: bytes, weighed by the length of their runs.
struct Orders {
    std::vector<Chosen> choices;
    Index cost = 0;
};

/// The tile at both ends.
struct TileEnds {
    Order source;               ///< its order before the first stage
    std::vector<Index> target;  ///< its extents after the last stage, in row-major order
    Index bytes = 1;            ///< of an element of the target
};

[[nodiscard]] Orders choose_orders(const std::vector<Stage>& stages, const TileEnds& ends);

/// The same, after splitting gathers of several dimensions into one for each, the innermost first, if that saves copies
/// of more than a mebibyte. The gathered digits in front are then already in place.
[[nodiscard]] Orders split_gathers(std::vector<Stage>& stages, const TileEnds& ends);

/// The intermediate orders from one order to another: empty if one transpose suffices, else row-major. pre: both are
/// orders of a tile of these extents.
[[nodiscard]] std::vector<Order> way(const Order& from, const Order& to, const std::vector<Index>& extents);

/// The order after a stage that ran on `before`.
[[nodiscard]] Order behind(const Stage& stage, const Chosen& chosen);

}  // namespace reshard
