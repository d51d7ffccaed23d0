// Where the permutes of a tile program stand.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// A permute of what was just sliced goes behind the all_to_alls that follow it, whose groups are then those of the
/// positions that the tiles come from: nothing else is moved or received, and a compiler makes one copy of the slice
/// and of the blocks that an all_to_all sends.
void permute_behind_all_to_alls(std::vector<Operation>& operations);

}  // namespace reshard
