// Tabu search over orders of programs without limits on memory (Nowicki and Smutnicki 1996).
#pragma once

#include "synth/program/improve.hpp"

namespace reshard::program {

/// Returns an order that is at least as good as `best`, after `rounds` changes or at the bound, whichever is first. A
/// change takes an activity to an end of its block in a chain that ends last, or an end of a block into it. Each round
/// estimates all changes of a chain, and makes the best one that does not undo a recent one. Counts the rounds down.
/// pre: no place has a limit.
[[nodiscard]] Found tabu(const Activities& program, const Paths& paths, Found best, Index bound, Index& rounds);

}  // namespace reshard::program
