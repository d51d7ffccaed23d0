// Boxes cut into smaller ones, the same on every rank.
#pragma once

#include <functional>
#include <vector>

#include "reshard/planner/tile.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Cuts a box into boxes of at most `elements_max` elements (at least one), in row-major order. They are slabs, as even
/// as possible, of the outermost dimension that must be cut. An empty box has none. Boxes of one shape are cut in the
/// same way.
[[nodiscard]] std::vector<Box> slabs(const Box& box, Index elements_max);

/// The elements of `box` outside of `hole`, as disjoint boxes. pre: the box contains the hole, which is not empty.
[[nodiscard]] std::vector<Box> without(Box box, const Box& hole);

/// Cuts a tile into boxes of at most `elements_max` elements. Each box is contiguous in the dense tile. Calls
/// visit(box, number of its first element in the dense tile) in that order. Stops at the first error.
[[nodiscard]] Result<void> for_each_piece(const Tile& tile, Index elements_max,
                                          const std::function<Result<void>(const Box& piece, Index first)>& visit);

}  // namespace reshard
