// Lowers the fill of a halo to a backend's input on one rank.
#pragma once

#include "reshard/halo/exchange.hpp"

namespace reshard {

/// The plans of one array on this rank, in rounds that run one after another. Each plan is one step from the source to
/// the array. In place, the source is the same memory.
struct LoweredHalo {
    /// The first round has a plan for each wrap, so that a box has the same indices on both sides. Later rounds are
    /// local copies for elements with several cells. All ranks have equally many plans in each.
    std::vector<std::vector<RankPlan>> rounds;
    Index source_bytes = 0;    ///< least size of the source, 0 in place
    Index target_bytes = 0;    ///< least size of the array
    Index received_bytes = 0;  ///< from other ranks
};

/// Errors: as HaloExchange::prepare, but for errors of other ranks and of the backend.
[[nodiscard]] Result<LoweredHalo> lower_halo(const HaloMove& move, Index rank, const HaloStorages& storages);

}  // namespace reshard
