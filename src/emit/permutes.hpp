// Chooses the places of the permutes in a tile program.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// Moves a permute of a slice behind the all_to_alls that follow it. Their groups become the positions that the tiles
/// come from. Nothing else is moved or received. A compiler then copies the slice and the blocks of an all_to_all only
/// once.
void permute_behind_all_to_alls(std::vector<Operation>& operations);

}  // namespace reshard
