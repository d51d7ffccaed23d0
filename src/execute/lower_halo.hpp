// Lowers the fill of a halo to a backend's input on one rank.
#pragma once

#include "reshard/halo/exchange.hpp"

namespace reshard {

/// The plans of one array on this rank, which run one after another. Each is one step from the source to the array. In
/// place, the source is the same memory.
struct LoweredHalo {
    HaloWay way = HaloWay::at_once;
    /// The exchanges of the way, and then local copies for elements with several cells. All ranks have equally many.
    std::vector<RankPlan> rounds;
    Index source_bytes = 0;    ///< least size of the source, 0 in place
    Index target_bytes = 0;    ///< least size of the array
    Index received_bytes = 0;  ///< from other ranks
};

/// Lowers one array. Errors: as HaloExchange::prepare, without the errors of other ranks and of the backend.
[[nodiscard]] Result<LoweredHalo> lower_halo(const HaloMove& move, HaloWay way, Index rank,
                                             const HaloStorages& storages);

}  // namespace reshard
