// Runs the schedules of all ranks at once, by copying straight from tile to tile. It is the oracle of the other
// backends, so it is written to be obviously right: it matches every send with its receive before it copies.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard::local {

/// One rank's part in a run.
struct Party {
    const std::vector<RankPlan>* plans = nullptr;
    std::vector<Buffers> buffers;
};

/// Runs all arrays, step by step; party i is rank i. Returns the seconds per step, array by array.
/// Errors: backend, with step, rank and peer, when the ranks bring different numbers of arrays or steps, when a send
/// and its receive differ or one of them is missing, or when a box lies outside its tile.
[[nodiscard]] Result<std::vector<double>> deliver(std::span<const Party> parties);

}  // namespace reshard::local
