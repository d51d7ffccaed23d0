// From a list of plans to what a backend is given on one rank, within a footprint limit.
#pragma once

#include "reshard/execute.hpp"

namespace reshard {

/// What one rank runs for a list: per array, and per piece of those arrays that keep the limit in pieces only.
struct LoweredList {
    std::vector<RankPlan> arrays;       ///< of an array in pieces, with the workspace of one piece
    std::vector<RankPlan> pieces;       ///< what the backend prepares
    std::vector<std::size_t> array_of;  ///< of each piece
    Index staging_room = index_max;     ///< bytes that the limit leaves to the backend
};

/// Errors: as lower; mismatch when the backend has too few ranks; infeasible when the callers' own buffers are over the
/// limit.
[[nodiscard]] Result<LoweredList> lower_list(std::span<const Plan> plans, const Backend& backend,
                                             std::span<const Storages> storages, const PrepareOptions& options);

/// The plan as its one fused exchange, without a workspace. pre: plan.fused.
void run_fused(RankPlan& plan);

[[nodiscard]] Index most_workspace(std::span<const RankPlan> plans);
[[nodiscard]] Index bytes_of_ends(std::span<const RankPlan> plans);  ///< sources and targets; saturates

}  // namespace reshard
