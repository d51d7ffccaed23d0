// Copies between registered memory and its shadow pages, for the two pages that the memory fills only in part. Before a
// run, exactly the bytes that peers read are copied there. After it, exactly the bytes that peers wrote come back.
#pragma once

#include "backends/mpi/shm/peer_regions.hpp"
#include "backends/mpi/shm/registered_pages.hpp"

namespace reshard::mpi {

struct ShadowCopy {
    std::size_t array = 0;
    std::size_t peer = 0;
    std::byte* own = nullptr;
    std::byte* shadow = nullptr;
    std::size_t bytes = 0;
};

/// Adds, run by run, the bytes of a region that lie in the memory's two partial pages. The region counts from `start`.
void add_shadow_copies(std::vector<ShadowCopy>& copies, const PeerRegion& part, const Region& region,
                       const std::byte* start, const RegisteredPages& pages);

}  // namespace reshard::mpi
