// Peers see a shadow of registered memory for the two pages that the memory has only in part. Before a run, exactly the
// bytes that peers read are copied to the shadow. After it, exactly the bytes that they wrote are copied back.
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

/// Adds what a region, counted from `start`, has in the memory's two partial pages, run by run.
void add_shadow_copies(std::vector<ShadowCopy>& copies, const PeerRegion& part, const Region& region,
                       const std::byte* start, const RegisteredPages& pages);

}  // namespace reshard::mpi
