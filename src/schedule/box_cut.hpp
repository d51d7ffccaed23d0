// A box cut into smaller ones, the same on every rank.
#pragma once

#include <vector>

#include "reshard/algebra/tile.hpp"

namespace reshard {

/// Boxes of at most so many elements (at least one), in row-major order: slabs of the outermost dimension that must be
/// cut.
[[nodiscard]] std::vector<Box> slabs(const Box& box, Index elements_max);

}  // namespace reshard
