// Reductions among ranks of one node, without messages. Every rank reads its peers' summands in place and adds them in
// the order of the schedule into its own target. If all ranks want the sum, each adds up its share and writes it into
// all targets, so that a summand is read once. Data that peers do not reach goes through bounce buffers in pieces. Each
// rank writes a piece of its summand into the bounce buffer of the rank that adds it up. If all want the sum, that rank
// writes it back into everybody's buffer.
#pragma once

#include "backends/mpi/shm/peer_regions.hpp"
#include "backends/mpi/shm/signals.hpp"
#include "src/copy/multi_reduce.hpp"

namespace reshard::mpi {

/// The sums of a reducing step on this rank: for each box of its target the summands of the same ranks, in this order.
struct Summands {
    std::vector<Index> ranks;
    std::vector<Box> boxes;
};

/// Nothing where the receives are of another form.
[[nodiscard]] std::optional<Summands> summands_of(const Schedule& schedule);

/// The reductions of one stage that have the same ranks' summands. Ranks count from 0 among these.
class ShmReducePlan {
public:
    /// Collective. `steps` has one entry per array of the list. Errors, the same on all ranks: backend if the ranks'
    /// steps do not fit each other, or if peers cannot reach each other's memory.
    [[nodiscard]] static Result<std::unique_ptr<ShmReducePlan>> make(MPI_Comm communicator,
                                                                     const std::shared_ptr<Arena>& arena,
                                                                     std::span<const ArrayStep> steps,
                                                                     Index bounce_bytes,
                                                                     std::chrono::milliseconds timeout);

    /// The least bytes of a bounce buffer among so many ranks.
    [[nodiscard]] static Index smallest_bounce_bytes(Index ranks);
    [[nodiscard]] static std::size_t signal_addresses(std::size_t arrays) { return 4 * arrays; }

    [[nodiscard]] Index bounce_bytes() const { return signals_->taken_bytes(); }
    [[nodiscard]] Index held_bytes() const { return bounce_bytes() + signals_->own_bytes(); }
    /// How it adds up, for people.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool takes(std::size_t array) const;
    [[nodiscard]] Arena& arena() const { return *arena_; }
    /// The parts of a registered source that peers read. If all want the sum, also the parts of a registered target
    /// that they write.
    [[nodiscard]] const PeerRegions& reached() const { return reached_; }
    [[nodiscard]] Signals& signals() const { return *signals_; }

private:
    friend class ShmReduceRun;
    // The boxes that one rank takes: where this rank's summands of them lie, and where they go there.
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
        bool for_all = false;                       // every rank takes the same
        std::vector<std::size_t> order;             // of the summands; empty where this rank takes nothing
        std::vector<Taker> takers;                  // per rank
        std::vector<std::vector<Region>> summands;  // per rank: its summands of the boxes that this rank takes
        std::vector<MultiReduce> folds;             // of memory that all reach
    };
    // A piece of a sum in the bounce buffers: `box` of one of the taker's boxes, at `offset` of its slots.
    struct Piece {
        const Array* array;
        std::size_t taker;  // who adds it up
        std::size_t number;
        Box box;
        Index offset;
    };
    struct Round {
        std::vector<Piece> pieces;
        bool for_all = false;
    };

    ShmReducePlan() = default;
    Result<void> add_arrays(const PeerRegions& parts, std::span<const ArrayStep> steps);
    Result<void> fits(const Array& array) const;
    void add_folds(Array& array) const;
    void add_reached(const Array& array);
    Result<void> make_bounce_buffers(MPI_Comm communicator, Index bounce_bytes);
    Result<void> choose(MPI_Comm communicator, Index bounce_bytes);
    void deal(const std::vector<char>& staged);
    [[nodiscard]] std::vector<Piece> cut(const Array& array, std::size_t taker) const;
    [[nodiscard]] bool goes_back(const Array& array) const { return array.for_all && !at_once_; }
    [[nodiscard]] Region slot(const Piece& piece, std::size_t writer, std::size_t owner, std::size_t half,
                              bool back) const;

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Signals> signals_;
    std::size_t rank_ = 0;
    std::size_t ranks_ = 1;
    std::vector<std::size_t> others_;
    std::vector<Array> arrays_;
    PeerRegions reached_;
    std::vector<std::byte*> bounce_buffers_;  // of all ranks
    Views views_;
    Index slot_bytes_ = 0;
    Index half_bytes_ = 0;  // of a bounce buffer: slots for summands, and for sums on their way back
    Store store_ = Store::cached;
    bool at_once_ = false;  // through bounce buffers, without a barrier before
    std::vector<char> staged_;
    std::vector<Round> rounds_;  // of the arrays that are staged
    std::uint64_t runs_ = 0;
    std::uint64_t turns_ = 0;  // of all runs that are over
};

/// The part of a box that one of so many ranks adds up for all: slabs of one dimension. May be empty.
[[nodiscard]] Box share_of(const Box& box, Index element_bytes, Index rank, Index ranks);

}  // namespace reshard::mpi
