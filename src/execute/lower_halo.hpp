// Lowers the fill of a halo to a backend's input on one rank.
#pragma once

#include "reshard/halo/exchange.hpp"

namespace reshard {

/// The plans of one array on this rank. A backend runs all that are in turn 0 together. There is one for each wrap, so
/// that a box has the same indices on both sides, and local copies for elements with several cells.
struct LoweredHalo {
    std::vector<RankPlan> plans;  ///< as many on every rank
    Index source_bytes = 0;       ///< least size of the source, 0 in place
    Index target_bytes = 0;       ///< least size of the array
    Index received_bytes = 0;     ///< from other ranks
};

/// Errors: as HaloExchange::prepare, but for errors of other ranks and of the backend.
[[nodiscard]] Result<LoweredHalo> lower_halo(const HaloMove& move, Index rank, const HaloStorages& storages);

}  // namespace reshard
