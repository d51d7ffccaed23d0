// Moves the permutes of a tile program to better places.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// Moves a permute of a fresh slice behind the all_to_alls that follow it, and renames their groups to the positions
/// before the permute. The traffic stays the same, and a compiler needs one copy for the slice and the blocks that the
/// all_to_all sends.
void permute_behind_all_to_alls(std::vector<Operation>& operations);

}  // namespace reshard
