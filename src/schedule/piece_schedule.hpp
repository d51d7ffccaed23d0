// The part of a schedule that one piece of a split is.
#pragma once

#include <span>

#include "reshard/execution.hpp"
#include "reshard/planner/schedule.hpp"

namespace reshard {

/// The same step for the elements of a piece alone: each transfer is cut to what the piece has of its box, in order, so
/// that both of its ranks cut alike. The tiles stay whole. pre: the schedule copies and fills nothing.
[[nodiscard]] Schedule schedule_of(const Schedule& whole, const Split& split, std::size_t piece);

/// The judge of such parts, of one rank: with each peer, either way, every element of a whole transfer is in exactly
/// one box of one piece, which is the piece that has it, and nothing else is. Code::plan with the peer if not.
[[nodiscard]] Result<void> check_pieces(const Schedule& whole, const Split& split, std::span<const Schedule> pieces);

}  // namespace reshard
