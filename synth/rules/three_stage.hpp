// A plan for every pair: slice, move, gather (theorems memory_bounded_existence and three_stage).
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// Slices until both ends use each prime equally often, moves equal tiles, gathers. With Vocabulary::all the move in
/// the middle is one exchange; with collectives it is one all-to-all or permute where that is typed, else prime factors
/// are repaired one at a time. Reductions come first, behind the slices that cost nothing. When sizes divide, every
/// step is typed and no tile exceeds the floor; when they do not, the judge may say no.
///
/// Slices as little as the ends allow, and further by unused axes with a stride below `inside`. The moves in the middle
/// then have smaller tiles. The gathers run inside groups of `inside` devices and receive the rest once.
[[nodiscard]] Plan three_stage(const Problem& problem, Vocabulary vocabulary, Index inside);

}  // namespace reshard
