// The buffers of one bind as the ranks of a node see them: where each lies in memory that peers reach.
#pragma once

#include "backends/mpi/shm/arena.hpp"
#include "backends/mpi/shm/shadow_copies.hpp"

namespace reshard::mpi {

struct ShmAddresses {
    std::vector<Buffers> buffers;              ///< per array
    std::vector<Address> addresses;            ///< per array the source's, then the target's
    std::vector<ShadowCopy> read_by_peers;     ///< of registered sources
    std::vector<ShadowCopy> written_by_peers;  ///< of registered targets, where peers write them

    /// `reached` says what peers read of a source (sends) and may write of a target (receives); it outlives this.
    /// Errors: backend where registered memory is not what it was.
    [[nodiscard]] static Result<ShmAddresses> bind(Arena& arena, const PeerRegions& reached,
                                                   std::span<const Buffers> buffers,
                                                   std::span<const Index> source_bytes,
                                                   std::span<const Index> target_bytes);

    /// Before a run: what was registered since or is no more. Errors: as bind.
    Result<void> renew(const Arena& arena);

    /// Fails when memory was given back since it was bound: neither this rank nor a peer may touch it then.
    [[nodiscard]] Result<void> kept(Arena& arena) const;

    /// Keeps what is registered so while a run uses it.
    [[nodiscard]] std::vector<RegisteredPages::Use> use() const;

private:
    [[nodiscard]] const std::byte* start(std::size_t index) const;
    void find_shadows();

    const PeerRegions* reached_ = nullptr;
    std::vector<Index> bytes_;                                  // per address
    std::vector<std::shared_ptr<RegisteredPages>> registered_;  // per address; null where it lies in none
};

/// False when only its owner reaches it.
[[nodiscard]] inline bool is_shared(const Address& address) { return address.segment.descriptor >= 0; }

}  // namespace reshard::mpi
