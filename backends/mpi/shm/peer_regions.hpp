// The data that two ranks exchange, with its place on both sides. Each rank tells its peers where the boxes lie that
// they send to it or receive from it.
#pragma once

#include "backends/mpi/base/handles.hpp"
#include "reshard/backends/backend.hpp"
#include "src/copy/copy.hpp"

namespace reshard::mpi {

/// A box of one array that moves between this rank and `peer`. Regions count from the start of the source buffer of the
/// one and of the target buffer of the other.
struct PeerRegion {
    std::size_t array = 0;
    std::size_t peer = 0;
    Region source;
    Region target;
};

struct PeerRegions {
    std::vector<PeerRegion> sends;     ///< in the order of the schedule; the receiver has them in the same order
    std::vector<PeerRegion> receives;  ///< in the same way; data that this rank keeps is in neither
    std::vector<PeerRegion> own;
};

/// One array's step that copies from the source to the target; null where the array takes no part.
struct ArrayStep {
    const RankStep* step = nullptr;
    DType dtype = DType::f32;
};

/// Collective over ranks that share an architecture. Errors: backend, with step and peer, when a send and its receive
/// are not of the same box.
[[nodiscard]] Result<PeerRegions> exchange_parts(MPI_Comm communicator, std::span<const ArrayStep> steps);

}  // namespace reshard::mpi
