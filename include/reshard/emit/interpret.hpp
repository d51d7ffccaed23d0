// What a tile program does, on host arrays of all devices: tests hold lowering, and what is written from it, against
// it.
#pragma once

#include "reshard/emit/program.hpp"
#include "reshard/planner/simulate.hpp"

namespace reshard {

/// The tiles of all devices behind the program. `tiles` and the result are by device, row-major, as those of simulate;
/// but summands are what they are, not shares of an average: a sum of `divisor(layout)` times the shares. Sums and
/// products wrap in 64 bits, a division truncates.
/// Errors: mismatch when a tile has not as many elements as the program's source or an operation does not fit its
/// shapes, its groups or its pairs.
[[nodiscard]] Result<Tiles> interpret(const TileProgram& program, const Tiles& tiles);

}  // namespace reshard
