// Registered memory of which peers see a shadow: what the two pages hold that the memory has only in part. Exactly the
// bytes that peers read go there before a run, and exactly those that they wrote come back after it.
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
