// A plan made ready on one rank: executor, memory, bound buffers. What `run` and `bench` do alike.
#pragma once

#include "reshard/execute.hpp"
#include "tool/ranks/memory_use.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

/// Bytes that a rank accounts for.
struct Accounted {
    Index source = 0;
    Index target = 0;
    Index workspace = 0;
    Index staging = 0;
    [[nodiscard]] Index all() const {
        return saturating_add(saturating_add(source, target), saturating_add(workspace, staging));
    }
};

/// What a run took.
struct MemoryTaken {
    Accounted accounted;     ///< of the rank that accounts for most
    Index growth_bytes = 0;  ///< of the process whose resident set grew most
    bool growth_exact = false;
};

/// Collective.
[[nodiscard]] MemoryTaken memory_taken(Rank& rank, const ResidentGrowth& growth, const Accounted& mine);

/// Collective: what this rank is about to take, of memory that Linux promises and may not have. Errors, on all ranks:
/// infeasible when the ranks of one machine need more than it has available.
[[nodiscard]] Result<void> enough_memory(Rank& rank, Index mine);

/// Whose memory the tiles lie in: what the backend allocates, the program's own pages, or those registered.
enum class TileMemory { allocated, callers, registered };

class Session {
public:
    /// Collective. `backend` is the rank's own or a baseline's, and must outlive the mover. Errors, on all ranks: those
    /// of Executor::prepare; infeasible when the machine has not the memory; backend.
    [[nodiscard]] static Result<std::unique_ptr<Session>> make(Rank& rank, Backend& backend, const Judged<Plan>& plan,
                                                               const Storages& storages = {},
                                                               TileMemory tiles = TileMemory::allocated);

    /// The tiles in the program's memory. Of a device these are copies, brought there before a move and back after it.
    /// A move leaves nothing that is promised in a donated source.
    [[nodiscard]] std::span<std::byte> source() { return backend_.on_device() ? own_source_ : source_there(); }
    [[nodiscard]] std::span<std::byte> target() { return backend_.on_device() ? own_target_ : target_there(); }
    [[nodiscard]] const Accounted& accounted() const { return accounted_; }
    [[nodiscard]] const RankPlan& rank_plan() const { return executor_.plans().front(); }
    /// What it took to register the tiles of this rank and to end that.
    [[nodiscard]] double register_seconds() const { return register_seconds_; }
    [[nodiscard]] std::string transport() const { return executor_.describe(); }

    /// Overwrites the target, so that nothing found there later is what another move brought.
    void wipe();

    /// Collective: moves once; the seconds from the barrier before to the slowest rank's end.
    [[nodiscard]] Result<double> move(Rank& rank);
    [[nodiscard]] std::vector<double> step_seconds() const { return bound_->step_seconds(); }

private:
    Session(Executor executor, Backend& backend, bool donate)
        : executor_(std::move(executor)), backend_(backend), donate_(donate) {}
    [[nodiscard]] Result<void> take_memory(TileMemory tiles);
    [[nodiscard]] Result<std::unique_ptr<Memory>> own_pages(Index bytes) const;
    [[nodiscard]] Result<void> register_tiles();
    [[nodiscard]] Result<void> bring();
    [[nodiscard]] Result<void> fetch();
    [[nodiscard]] std::span<std::byte> source_there() { return source_->bytes().first(size(accounted_.source)); }
    [[nodiscard]] std::span<std::byte> target_there() { return target_->bytes().first(size(accounted_.target)); }
    [[nodiscard]] static std::size_t size(Index bytes) { return static_cast<std::size_t>(bytes); }

    Executor executor_;
    Backend& backend_;
    const bool donate_;
    std::vector<std::byte> own_source_;  // on a device only
    std::vector<std::byte> own_target_;
    Accounted accounted_;
    std::unique_ptr<Memory> source_;
    std::unique_ptr<Memory> target_;
    std::unique_ptr<Memory> workspace_;
    std::vector<Registration> registrations_;
    double register_seconds_ = 0;
    std::unique_ptr<Bound> bound_;  // last, because it refers to all of the above
};

}  // namespace reshard::cli
