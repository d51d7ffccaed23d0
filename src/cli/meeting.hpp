// Where ranks that are threads of this process meet.
#pragma once

#include <barrier>
#include <string>
#include <vector>

#include "ranks.hpp"

namespace reshard::cli {

struct Meeting {
    explicit Meeting(Index ranks) : barrier(ranks), brought(static_cast<std::size_t>(ranks)) {}

    /// What each rank brought, in rank order.
    std::vector<std::string> share(Index rank, std::string mine) {
        brought[static_cast<std::size_t>(rank)] = std::move(mine);
        barrier.arrive_and_wait();
        std::vector<std::string> all = brought;
        barrier.arrive_and_wait();  // nobody brings the next thing before all have this one
        return all;
    }

    std::barrier<> barrier;
    std::vector<std::string> brought;
};

}  // namespace reshard::cli
