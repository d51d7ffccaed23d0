// The part of a schedule for one piece of a split.
#pragma once

#include <span>

#include "reshard/execution.hpp"
#include "reshard/planner/schedule.hpp"

namespace reshard {

/// Returns the step for the elements of one piece. Each transfer is cut to the part of its box in the piece, in order,
/// so both of its ranks cut in the same way. The tiles stay whole. pre: the schedule copies and fills nothing.
[[nodiscard]] Schedule schedule_of(const Schedule& whole, const Split& split, std::size_t piece);

/// Judges these parts on one rank. For each peer and direction, each element of a whole transfer must be in exactly one
/// box, in the piece that has it, and no box may hold others. Fails with Code::plan and the peer.
[[nodiscard]] Result<void> check_pieces(const Schedule& whole, const Split& split, std::span<const Schedule> pieces);

}  // namespace reshard
