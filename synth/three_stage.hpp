// A plan for every pair: slice, move, gather (theorems memory_bounded_existence and three_stage).
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// Slices until both ends use each prime equally often, moves equal tiles, gathers. With Vocabulary::all the move in
/// the middle is one exchange; with collectives it is one all-to-all or permute where that is typed, else prime factors
/// are repaired one at a time. Reductions come first, behind the slices that cost nothing. When sizes divide, every
/// step is typed and no tile exceeds the floor; when they do not, the judge may say no.
///
/// Depth::shallow slices no more than the ends make necessary. Depth::deep slices by all that both ends leave unused,
/// so that what takes several moves is done with small tiles; the gathers then receive the rest once.
enum class Depth { shallow, deep };
[[nodiscard]] Plan three_stage(const Problem& problem, Vocabulary vocabulary, Depth depth);

}  // namespace reshard
