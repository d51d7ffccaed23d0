// Boxes in C order: cut into pieces that lie one behind the other in a dense tile, and into the runs that a box has
// in an array that holds it.
#pragma once

#include <functional>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard::cli {

/// Calls `visit(piece, first)` for boxes of at most `elements_max` elements that tile `box` in C order; `first`
/// is the number of the piece's first element in the dense tile. Stops at the first error.
[[nodiscard]] Result<void> for_each_piece(const Box& box, Index elements_max,
                                          const std::function<Result<void>(const Box& piece, Index first)>& visit);

/// The same for a tile whose sides have several intervals: every box lies in one interval of each side.
[[nodiscard]] Result<void> for_each_piece(const Tile& tile, Index elements_max,
                                          const std::function<Result<void>(const Box& piece, Index first)>& visit);

/// A stretch of consecutive elements both in the array and in the dense tile of the box.
struct Run {
    Index in_array = 0;  ///< number of its first element in the array, in C order
    Index in_tile = 0;
    Index elements = 0;
};

/// Calls `visit` for the longest such runs, in order. pre: the box lies inside the shape, whose product fits 64 bits.
[[nodiscard]] Result<void> for_each_run(const std::vector<Index>& shape, const Box& box,
                                        const std::function<Result<void>(const Run& run)>& visit);

/// Elements from the start of one run of the box to the next; the run itself when there is only one.
[[nodiscard]] Index run_stride(const std::vector<Index>& shape, const Box& box);

/// The same tile of the array with its dimensions in the opposite order: Fortran order is C order of that.
[[nodiscard]] Tile reversed(Tile tile);

}  // namespace reshard::cli
