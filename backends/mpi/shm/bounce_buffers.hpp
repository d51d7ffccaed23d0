// Moves between buffers that no peer reaches: each rank packs the next pieces of what it sends into its peers' windows,
// and copies out of its own what they packed. Every pair of ranks goes at its own pace, one half of its slot ahead, but
// for those whose parts lie side by side in the source, which is then read in its order.
#pragma once

#include "backends/mpi/shm/bounce_pieces.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// Where one sender's pieces land in a window: in one of two halves, in turn.
struct BounceSlot {
    std::int64_t flags = 0;  ///< where its flags are
    std::int64_t offset = 0;
    std::int64_t half_bytes = 0;  ///< 0: the sender has none
};

/// Halves that were filled and emptied, over all runs.
struct SlotFlags {
    alignas(64) Counter filled;   ///< the sender's
    alignas(64) Counter drained;  ///< the receiver's
};

/// Deals out a window of about `window_bytes` to senders of so many bytes each.
[[nodiscard]] std::vector<BounceSlot> deal_window(const std::vector<Index>& incoming, Index window_bytes);

/// One rank's window, and its slots in those of its peers.
class BounceBuffers {
public:
    /// Collective. Errors on all ranks alike; backend where peers cannot reach each other's memory.
    Result<void> make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena, const PeerRegions& parts,
                      Index window_bytes);

    [[nodiscard]] Index bytes() const { return own_ ? static_cast<Index>(own_->bytes().size()) : 0; }

    /// True when all that this rank sends fits the slots at once.
    [[nodiscard]] bool hold_all() const;

    /// Begins a run: per peer and array, what goes through windows; of which arrays what stays on this rank is moved on
    /// the way; and how windows are written.
    void restart(const std::vector<std::vector<char>>& to_stage, const std::vector<std::vector<char>>& from_stage,
                 const std::vector<char>& own, Store window_store);

    /// Moves all that can be moved now. Of what it waits for then, any one will do; of nothing when the run is through.
    /// True when something moved.
    bool advance(Signals& signals, const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets,
                 Store store);
    [[nodiscard]] const Signals::Wanteds& wanted() const { return wanted_; }

private:
    struct Pair {
        std::size_t peer;
        BouncePieces pieces;
        SlotFlags* flags;
        std::byte* halves;
        Index half_bytes;
        std::uint64_t moved = 0;  // halves, over all runs
        Index packed_bytes = 0;   // of the half that is being filled; -1: none is
        [[nodiscard]] std::byte* half() const { return halves + static_cast<Index>(moved % 2) * half_bytes; }
    };
    [[nodiscard]] std::size_t open_halves();
    bool fill(Signals& signals, const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets,
              Store store);
    bool drain(Signals& signals, Pair& pair, const std::vector<std::byte*>& targets, Store store);

    std::unique_ptr<Memory> own_;
    Views views_;  // of the peers' buffers
    std::optional<BouncePieces> staying_;
    std::vector<Pair> outgoing_;
    std::vector<Pair> incoming_;
    std::vector<std::vector<std::size_t>> groups_;  // of outgoing pairs
    DealtCopies copies_;
    Store window_store_ = Store::cached;
    Signals::Wanteds wanted_;
};

}  // namespace reshard::mpi
