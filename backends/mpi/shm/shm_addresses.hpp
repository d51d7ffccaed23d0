// The buffers of one bind as the ranks of a node see them: the address of each in memory that peers reach.
#pragma once

#include <optional>

#include "backends/mpi/shm/arena.hpp"
#include "backends/mpi/shm/shadow_copies.hpp"

namespace reshard::mpi {

struct ShmAddresses {
    std::vector<Buffers> buffers;              ///< per array
    std::vector<const std::byte*> sources;     ///< per array: where they begin in this process
    std::vector<std::byte*> targets;           ///< the same
    std::vector<Address> addresses;            ///< per array: source, then target
    std::vector<ShadowCopy> read_by_peers;     ///< of registered sources
    std::vector<ShadowCopy> written_by_peers;  ///< of registered targets that peers write

    /// `reached` lists the regions that peers read of a source (sends) and may write of a target (receives). It must
    /// outlive the result. Null if no peer reaches the buffers: then they have no addresses. Errors: backend if
    /// registered memory was freed or mapped anew.
    [[nodiscard]] static Result<ShmAddresses> bind(Arena& arena, const PeerRegions* reached,
                                                   std::span<const Buffers> buffers,
                                                   std::span<const Index> source_bytes,
                                                   std::span<const Index> target_bytes);

    /// The same with other buffers, in place.
    Result<void> rebind(Arena& arena, std::span<const Buffers> others);
    /// Refers to no buffer from now on. If nothing of them is kept, it does nothing and returns true.
    bool unbind();

    /// Finds, before a run, memory that was registered or ended since. Errors: as bind.
    Result<void> renew(const Arena& arena);

    /// Fails if memory was given back after the bind: neither this rank nor a peer may touch it then.
    [[nodiscard]] Result<void> kept(Arena& arena) const;

    /// Keeps registered memory registered while a run uses it.
    [[nodiscard]] std::vector<RegisteredPages::Use> use() const;

private:
    [[nodiscard]] const std::byte* start(std::size_t index) const;
    void forget();
    void find_shadows();

    const PeerRegions* reached_ = nullptr;
    std::vector<Index> bytes_;                                  // per address
    std::vector<std::shared_ptr<RegisteredPages>> registered_;  // per address, or empty; null: not registered
    mutable std::optional<std::uint64_t> kept_at_;              // Arena::changes() when all was kept
};

/// False if only its owner reaches it.
[[nodiscard]] inline bool is_shared(const Address& address) { return address.segment.descriptor >= 0; }

}  // namespace reshard::mpi
