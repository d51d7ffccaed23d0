// How a step is cut into pieces: the same on both ends of a message, whatever their storages.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard::nccl {

/// The box as boxes of at most `elements_max` elements (at least 1), in row-major order. Depends on nothing but the
/// extents: boxes of one shape are cut alike. Empty boxes give none.
[[nodiscard]] std::vector<Box> cut(const Box& box, Index elements_max);

/// What two ranks say to each other in a step, as one list of boxes per piece. Full pieces hold `elements_max`
/// elements, or as many whole boxes of a cut as fit.
[[nodiscard]] std::vector<std::vector<Box>> pieces_of(const std::vector<Box>& boxes, Index elements_max);

}  // namespace reshard::nccl
