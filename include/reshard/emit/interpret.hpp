// An interpreter of tile programs on host arrays of all devices. Tests compare the lowering and its texts with it.
#pragma once

#include "reshard/emit/program.hpp"
#include "reshard/planner/simulate.hpp"

namespace reshard {

/// Returns the tiles of all devices after the program. Tiles are indexed by device and row-major, as in simulate.
/// Summands are plain values, not shares of an average: a sum is `divisor(layout)` times the shares. Sums and products
/// wrap in 64 bits, and a division truncates.
/// Errors: mismatch if the size of a tile differs from the program's source, or if an operation does not fit its
/// shapes, groups or pairs.
[[nodiscard]] Result<Tiles> interpret(const TileProgram& program, const Tiles& tiles);

}  // namespace reshard
