// In which order the elements of the tile lie before each stage, so that as few bytes as possible are copied.
#pragma once

#include "src/portable/stages.hpp"

namespace reshard {

/// What one stage runs on.
struct Chosen {
    Order order;                        ///< of the tile when it runs: what it takes is in front
    std::vector<std::size_t> rotation;  ///< the stage's members in the order of its group
};

/// One choice for each stage. `bytes`: of one element.
[[nodiscard]] std::vector<Chosen> choose_orders(const std::vector<Stage>& stages, const std::vector<Index>& source,
                                                const std::vector<Index>& target, Index bytes);

/// The orders through which a tile goes from one to another: none between where one transpose does it, else row-major.
/// pre: both of a tile of these extents.
[[nodiscard]] std::vector<Order> way(const Order& from, const Order& to, const std::vector<Index>& extents);

/// The order behind a stage that ran on `before`.
[[nodiscard]] Order behind(const Stage& stage, const Chosen& chosen);

}  // namespace reshard
