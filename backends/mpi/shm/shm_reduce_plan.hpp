// Reductions among the ranks of one node, without messages. Every rank reads its peers' summands in place and adds them
// into its own target, in the order of the schedule. If all ranks want the sum, each rank adds up its share and writes
// it into all targets, so that each summand is read once. Small summands go through mailboxes, with one meeting, and
// each rank adds up for itself. Other summands that peers do not reach go through bounce buffers in pieces. Each rank
// writes a piece into the bounce buffer of the rank that adds it up. If all want the sum, that rank writes the sum back
// into the bounce buffers of all others.
#pragma once

#include "backends/mpi/shm/mailboxes.hpp"
#include "backends/mpi/shm/peer_regions.hpp"
#include "backends/mpi/shm/signals.hpp"
#include "src/copy/multi_reduce.hpp"

namespace reshard::mpi {

/// The summands that a step adds up on this rank: for each box of its target, one from each rank, in this order.
struct Summands {
    std::vector<Index> ranks;
    std::vector<Box> boxes;
};

/// Empty if the receives have another form.
[[nodiscard]] std::optional<Summands> summands_of(const Schedule& schedule);

/// The reductions of one stage over the summands of the same ranks. Ranks count from 0 among these.
class ShmReducePlan {
public:
    /// Collective. `steps` has one entry per array of the list. All ranks return an error if one does: backend if the
    /// ranks' steps do not match, or if peers cannot reach each other's memory.
    [[nodiscard]] static Result<std::unique_ptr<ShmReducePlan>> make(MPI_Comm communicator,
                                                                     const std::shared_ptr<Arena>& arena,
                                                                     std::span<const ArrayStep> steps,
                                                                     Index bounce_bytes,
                                                                     std::chrono::milliseconds timeout);

    /// True if so many ranks add up faster from mailboxes. Each of them takes `taken` bytes of sums, and `for_all` of
    /// these bytes are sums that all ranks take. pre: barrier_bytes is Signals::barrier_bytes.
    [[nodiscard]] static bool pays_by_mail(Index taken, Index for_all, Index ranks, Index barrier_bytes);
    /// The smallest bounce buffer among so many ranks.
    [[nodiscard]] static Index smallest_bounce_bytes(Index ranks);
    [[nodiscard]] static std::size_t signal_addresses(std::size_t arrays) { return 4 * arrays; }

    [[nodiscard]] Index bounce_bytes() const { return signals_->taken_bytes(); }
    [[nodiscard]] Index held_bytes() const { return bounce_bytes() + signals_->own_bytes(); }
    /// How it adds up, for people.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool takes(std::size_t array) const;
    [[nodiscard]] Arena& arena() const { return *arena_; }
    /// The regions that peers read of registered sources and, if all ranks want the sum, write of registered targets.
    /// Null if peers reach neither.
    [[nodiscard]] const PeerRegions* reached() const { return is_small() ? nullptr : &reached_; }
    [[nodiscard]] bool is_small() const { return mailboxes_.has_value(); }
    [[nodiscard]] Signals& signals() const { return *signals_; }

private:
    friend class ShmReduceRun;
    // The boxes that one rank adds up, with this rank's summands of them and their places in the target of that rank.
    struct Taker {
        std::vector<Box> boxes;
        std::vector<Region> summands;
        std::vector<Region> targets;
    };
    struct Array {
        std::size_t array = 0;  // in the list
        std::size_t step = 0;   // its number in the plan, for errors
        DType dtype = DType::f32;
        Combine combine = Combine::sum;
        bool for_all = false;                       // every rank takes the same boxes
        std::vector<std::size_t> order;             // of the summands; empty if this rank takes nothing
        std::vector<Taker> takers;                  // per rank
        std::vector<std::vector<Region>> summands;  // per rank: its summands of the boxes that this rank takes
        std::vector<MultiReduce> folds;             // over memory that all ranks reach, or over messages
    };
    // A piece of a sum in the bounce buffers: `box` of the taker's box `number`, at `offset` in its slots.
    struct Piece {
        const Array* array;
        std::size_t taker;  // the rank that adds it up
        std::size_t number;
        Box box;
        Index offset;
    };
    // The copy of a piece into the bounce buffer of another rank, or from this rank's bounce buffer into its target.
    struct PieceCopy {
        std::size_t array;  // in the list
        std::size_t rank;
        BoxCopy copy;
    };
    struct PieceSum {
        std::size_t array;
        MultiReduce fold;  // memory is the source or the target of this rank, and the bounce buffers of others
    };
    // All places are in the first half of the bounce buffers.
    struct Round {
        std::vector<PieceCopy> fills;
        std::vector<PieceSum> sums;
        std::vector<PieceCopy> landings;
        bool for_all = false;
    };

    ShmReducePlan() = default;
    Result<void> add_arrays(const PeerRegions& parts, std::span<const ArrayStep> steps);
    Result<void> fits(const Array& array) const;
    void add_folds(Array& array) const;
    void add_piece(Round& round, const Piece& piece) const;
    void add_reached(const Array& array);
    Result<void> make_bounce_buffers(MPI_Comm communicator);
    Result<void> choose(MPI_Comm communicator, Index bounce_bytes);
    void deal(const std::vector<char>& staged);
    [[nodiscard]] std::vector<Piece> cut(const Array& array, std::size_t taker) const;
    [[nodiscard]] Region slot(const Piece& piece, std::size_t writer, std::size_t owner, bool back) const;

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Signals> signals_;
    std::size_t rank_ = 0;
    std::size_t ranks_ = 1;
    std::vector<std::size_t> others_;
    std::vector<Array> arrays_;
    PeerRegions reached_;
    PeerRegions mailed_;                      // the summands as messages hold them
    std::optional<Mailboxes> mailboxes_;      // all goes through them
    std::vector<std::byte*> bounce_buffers_;  // of all ranks
    Views views_;
    Index slot_bytes_ = 0;
    Index half_bytes_ = 0;  // of a bounce buffer: slots for summands, and for sums that come back
    Store store_ = Store::cached;
    std::vector<char> staged_;
    std::vector<Round> rounds_;              // of the staged arrays
    std::vector<const std::byte*> sources_;  // room for a run, per rank
    std::vector<std::byte*> targets_;
    std::uint64_t runs_ = 0;
    std::uint64_t turns_ = 0;  // of all finished runs
};

/// The part of a box that one of so many ranks adds up for all: a slab of one dimension. May be empty.
[[nodiscard]] Box share_of(const Box& box, Index element_bytes, Index rank, Index ranks);

}  // namespace reshard::mpi
