// The buffers of one bind as the ranks of a node see them: where each lies in memory that peers reach.
#pragma once

#include "backends/mpi/shm/arena.hpp"

namespace reshard::mpi {

struct ShmAddresses {
    std::vector<Buffers> buffers;    ///< per array
    std::vector<Address> addresses;  ///< per array the source's, then the target's

    [[nodiscard]] static ShmAddresses bind(Arena& arena, std::span<const Buffers> buffers,
                                           std::span<const Index> source_bytes, std::span<const Index> target_bytes);

    /// Fails when memory was given back since it was bound: neither this rank nor a peer may touch it then.
    [[nodiscard]] Result<void> kept(Arena& arena) const;
};

/// False when only its owner reaches it.
[[nodiscard]] inline bool is_shared(const Address& address) { return address.segment.descriptor >= 0; }

}  // namespace reshard::mpi
