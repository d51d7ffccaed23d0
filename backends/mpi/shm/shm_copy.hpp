// A whole list of arrays as one pass between the ranks of a node. Each rank writes its source, read once in memory
// order, straight into the targets that it reaches; reads sources that it reaches into its own target; and what neither
// side reaches goes through windows. One meeting before, one after; no packing, and no MPI.
#pragma once

#include "backends/mpi/shm/autotune.hpp"
#include "backends/mpi/shm/bounce_buffers.hpp"
#include "backends/mpi/shm/shm_addresses.hpp"
#include "reshard/mpi.hpp"
#include "src/copy/multi_copy.hpp"

namespace reshard::mpi {

/// What runs between the ranks of one node, prepared.
class ShmCopyPlan {
public:
    /// Collective. Errors on all ranks alike; backend where peers cannot reach each other's memory. With `may_leave`
    /// runs between buffers that are other memory may be left to MPI's datatypes, as the options say.
    [[nodiscard]] static Result<std::unique_ptr<ShmCopyPlan>> make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                                   std::span<const ArrayStep> steps,
                                                                   const BackendOptions& options, bool may_leave);

    /// Of so many arrays: the source's and the target's, of this run and of the next.
    [[nodiscard]] static std::size_t board_addresses(std::size_t arrays) { return 4 * arrays; }

    [[nodiscard]] Index window_bytes() const { return windows_.bytes(); }
    [[nodiscard]] Index held_bytes() const { return window_bytes() + signals_->own_bytes(); }
    /// The same on all ranks.
    [[nodiscard]] bool may_leave() const { return choice_ || fixed_ == UnregisteredBuffers::mpi_datatypes; }
    /// How long a run took that was left.
    void took(double seconds) { last_seconds_ = seconds; }
    /// How it moves, for people.
    [[nodiscard]] std::string describe() const;
    /// Ends runs of it, now or later, on all ranks: one that failed elsewhere will not take its part.
    void fail_all(const Error& error) { signals_->fail_all(error); }
    [[nodiscard]] Signals& signals() const { return *signals_; }
    [[nodiscard]] Arena& arena() const { return *arena_; }

private:
    friend class ShmCopy;
    struct Array {
        bool moves = false;
        std::size_t step = 0;  // its number in the plan, for errors
        MultiCopy push{MultiCopy::Kind::push};
        MultiCopy pull{MultiCopy::Kind::pull};
    };
    ShmCopyPlan() = default;
    Result<void> choose(MPI_Comm communicator, const PeerRegions& parts, UnregisteredBuffers unregistered_buffers);
    [[nodiscard]] std::string describe_other() const;

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Signals> signals_;
    std::vector<Array> arrays_;
    std::vector<std::size_t> partners_;  // ranks that this one sends to or receives from
    std::vector<std::size_t> met_;       // before a run: partners, or all who choose together
    BounceBuffers windows_;
    Store store_ = Store::cached;
    bool at_once_ = false;            // through the windows without a meeting before, whatever the buffers are
    std::optional<Autotune> choice_;  // of UnregisteredBuffers, where it is not fixed
    UnregisteredBuffers fixed_ = UnregisteredBuffers::bounce;
    double last_seconds_ = 0;  // of this rank's last run; 0: its time says nothing
    std::uint64_t runs_ = 0;
};

/// One run. After the first failure it tells all ranks and does nothing more.
class ShmCopy {
public:
    ShmCopy(ShmCopyPlan& plan, const ShmAddresses& buffers);
    Result<bool> advance(Slice most);
    /// After it has advanced to its end: nothing was moved, MPI is to move it.
    [[nodiscard]] bool leaves_to_messages() const {
        return unregistered_buffers_ == UnregisteredBuffers::mpi_datatypes;
    }

private:
    enum class Phase { entering, staging, leaving, over };

    Result<bool> next(Slice most);
    [[nodiscard]] Address& published(std::size_t rank, std::size_t index) const;
    [[nodiscard]] bool all_is_other_memory() const;
    void choose();
    [[nodiscard]] Store window_store() const {
        return unregistered_buffers_ == UnregisteredBuffers::bounce_nontemporal ? Store::streaming : Store::cached;
    }
    Result<void> resolve();
    [[nodiscard]] Result<std::byte*> reach(const Address& address, std::size_t array, std::size_t peer);
    void stage_all();
    void sweep();

    ShmCopyPlan& plan_;
    const ShmAddresses& buffers_;
    std::uint64_t run_;
    Phase phase_ = Phase::entering;
    std::vector<std::vector<std::byte*>> targets_;        // per array, per rank; null: not reached
    std::vector<std::vector<const std::byte*>> sources_;  // likewise, and null where the target is reached
    Views views_;                                         // of the peers' buffers
    std::vector<const std::byte*> own_sources_;           // per array
    std::vector<std::byte*> own_targets_;
    Signals::Wanteds leaving_;  // peers that read or write this rank's buffers, or whose it does
    UnregisteredBuffers unregistered_buffers_ = UnregisteredBuffers::bounce;
    bool timed_ = false;  // its time is one to choose by
    Signals::Clock::time_point met_at_;
    Waiting waiting_;
};

}  // namespace reshard::mpi
