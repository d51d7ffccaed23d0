// How a step is cut into pieces: the same on both ends of a message, whatever their storages.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard::nccl {

/// What two ranks say to each other in a step, as one list of boxes per piece, each as many slabs of at most
/// `elements_max` elements as together are no more.
[[nodiscard]] std::vector<std::vector<Box>> pieces_of(const std::vector<Box>& boxes, Index elements_max);

}  // namespace reshard::nccl
