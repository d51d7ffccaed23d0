// Lowers an exchange of boxes to a backend's input on one rank.
#pragma once

#include "reshard/boxes/exchange.hpp"
#include "src/boxes/routes.hpp"

namespace reshard {

/// The plans of one array on this rank, which run one after another. Each is one step from the buffer with owned boxes
/// to the buffer with wanted boxes. From the second round on, both are the buffer with wanted boxes.
struct LoweredBoxes {
    /// The exchange, and local copies if several boxes of some rank want an element. All ranks have equally many.
    std::vector<RankPlan> rounds;
    Index have_bytes = 0;  ///< least size of the buffer that is read
    Index want_bytes = 0;  ///< least size of the buffer that is written
    BoxTraffic traffic;
};

/// Lowers one array. Errors: as BoxExchange::prepare, without the errors of other ranks and of the backend.
[[nodiscard]] Result<LoweredBoxes> lower_boxes(const BoxTable& table, const BoxRoutes& routes, Index rank,
                                               const BoxStorages& storages);

}  // namespace reshard
