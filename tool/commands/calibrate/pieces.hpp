// The overhead of a run in pieces beside its price, measured through the backend.
#pragma once

#include "reshard/planner/cost.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

inline constexpr double second_ps = 1e12;

/// Collective. Sets Machine::piece_ps, from a gather over all ranks in many pieces beside one, and slowed_percent, from
/// arithmetic beside it, of a machine whose levels are measured. Errors: backend.
[[nodiscard]] Result<void> measure_pieces(Rank& rank, Index rounds, Machine& machine);

}  // namespace reshard::cli
