// Moves data between buffers that no peer reaches. Each rank packs the next pieces that it sends into its peers' bounce
// buffers, and copies the pieces that they packed out of its own. Every pair of ranks goes at its own pace, one half of
// its slot ahead. Pairs whose parts lie side by side in the source keep pace, so that the source is read in order.
#pragma once

#include <array>
#include <limits>

#include "backends/mpi/shm/bounce_pieces.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// The part of a bounce buffer that one sender fills: two halves, in turn.
struct BounceSlot {
    std::int64_t flags = 0;  ///< offset of its flags
    std::int64_t offset = 0;
    std::int64_t half_bytes = 0;  ///< 0: the sender has none
};

/// How many halves were filled and emptied, over all runs.
struct SlotFlags {
    alignas(64) Counter filled;   ///< written by the sender
    alignas(64) Counter drained;  ///< written by the receiver
};

/// Divides a bounce buffer of about `bounce_bytes` among its senders. `incoming` holds the bytes of each sender.
[[nodiscard]] std::vector<BounceSlot> deal_buffer(const std::vector<Index>& incoming, Index bounce_bytes);

/// Chooses the stores that fill bounce buffers. A cached store fetches the line from the core that read it last.
/// Between far cores that takes three times as long as a non-temporal store. Between near cores the receiver copies a
/// cached line in less time than it would from memory, so cached stores may take `longer` times as long. Processes move
/// from core to core, so a rank measures both kinds of stores once in each cycle of turns. The next cycle is twice as
/// long if the choice was confirmed.
class PackStores {
public:
    static constexpr int shortest = 128;  ///< turns of a cycle
    static constexpr int longest = 1024;
    static constexpr int samples = 4;  ///< turns that are measured with either store. The fastest one of them counts.
    static constexpr double longer = 1.5;

    /// Keeps the stores `first`, unless it measures.
    explicit PackStores(Store first = Store::cached, bool measures = false) : kept_(first), measures_(measures) {}

    [[nodiscard]] Store kept() const { return kept_; }
    /// For this turn.
    [[nodiscard]] Store now() const;
    /// Whether the caller must measure this turn.
    [[nodiscard]] bool measured() const { return measures_ && turns_left_ <= 2 * samples; }
    [[nodiscard]] int turns_left() const { return turns_left_; }  ///< in this cycle
    /// `seconds`: for each byte, of a measured turn.
    void end_turn(double seconds);

private:
    static constexpr double never = std::numeric_limits<double>::infinity();
    Store kept_;
    bool measures_;
    int cycle_ = shortest;
    int turns_left_ = shortest / 2;              // the first cycle is shorter
    std::array<double, 2> least_{never, never};  // seconds for each byte, by Store, in this cycle
};

/// One rank's bounce buffer, and its slots in its peers' bounce buffers.
class BounceBuffers {
public:
    /// Collective. All ranks return an error if one does: backend if peers cannot reach each other's memory. `signals`
    /// takes the memory for this rank's own buffer. It fills its peers' buffers with `stores`.
    Result<void> make(MPI_Comm communicator, Signals& signals, Arena& arena, const PeerRegions& parts,
                      Index bounce_bytes, const PackStores& stores);

    /// Begins a run. `to_stage` and `from_stage` mark, per peer and array, the data that goes through bounce buffers.
    /// `own` marks the arrays whose share on this rank is copied on the way.
    void restart(const std::vector<std::vector<char>>& to_stage, const std::vector<std::vector<char>>& from_stage,
                 const std::vector<char>& own);

    /// Moves all that can move now; returns true if something moved. After that wanted() names the counters that this
    /// waits for, and any one of them is enough. It is empty once the run is over.
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
        Index packed_bytes = 0;   // in the half that is being filled; -1: no half is
        [[nodiscard]] std::byte* half() const { return halves + static_cast<Index>(moved % 2) * half_bytes; }
    };
    [[nodiscard]] std::size_t open_halves();
    void fill(Signals& signals, const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets,
              Store store, std::size_t open);
    void run_copies(Index bytes);
    bool drain(Signals& signals, Pair& pair, const std::vector<std::byte*>& targets, Store store);

    Views views_;  // of the peers' buffers
    std::optional<BouncePieces> staying_;
    std::vector<Pair> outgoing_;
    std::vector<Pair> incoming_;
    std::vector<std::vector<std::size_t>> groups_;  // outgoing pairs that keep pace
    DealtCopies copies_;
    PackStores stores_;
    Signals::Wanteds wanted_;
};

}  // namespace reshard::mpi
