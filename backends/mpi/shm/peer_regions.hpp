// The boxes that two ranks move between each other, with their places on both sides. Each rank tells its peers where
// the boxes lie that they send to it or receive from it.
#pragma once

#include "backends/mpi/base/handles.hpp"
#include "reshard/backends/backend.hpp"
#include "src/copy/copy.hpp"

namespace reshard::mpi {

/// A box of one array that moves between this rank and `peer`. `source` counts from the start of the sender's source
/// buffer, `target` from the start of the receiver's target buffer.
struct PeerRegion {
    std::size_t array = 0;
    std::size_t peer = 0;
    Region source;
    Region target;
    ElementCast cast = {};  ///< from source to target
};

/// The bytes that a box takes in a message or a bounce buffer: its elements travel in the narrower type.
[[nodiscard]] Index sent_bytes(const PeerRegion& part);

struct PeerRegions {
    std::vector<PeerRegion> sends;     ///< in the order of the schedule; the receiver has the same order
    std::vector<PeerRegion> receives;  ///< in that order too; boxes that stay on this rank are in `own`
    std::vector<PeerRegion> own;
};

/// The step of one array that copies from source to target. `step` is null if the array takes no part.
struct ArrayStep {
    const RankStep* step = nullptr;
};

/// Collective over ranks that share an architecture. Errors: backend, with step and peer, if send and receive differ.
[[nodiscard]] Result<PeerRegions> exchange_parts(MPI_Comm communicator, std::span<const ArrayStep> steps);

}  // namespace reshard::mpi
