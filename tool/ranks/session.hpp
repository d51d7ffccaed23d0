// A plan made ready on one rank, for `run` and `bench`: executor, memory, bound buffers.
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

/// The memory of a run.
struct MemoryTaken {
    Accounted accounted;     ///< of the rank that accounts for most
    Index growth_bytes = 0;  ///< of the process whose resident set grew most
    bool growth_exact = false;
};

/// Collective.
[[nodiscard]] MemoryTaken memory_taken(Rank& rank, const ResidentGrowth& growth, const Accounted& mine);

/// Collective: checks that the machine has the bytes that its ranks are about to allocate. Linux promises memory that
/// it may not have. Errors, on all ranks: infeasible (the ranks of one machine need more than is available).
[[nodiscard]] Result<void> enough_memory(Rank& rank, Index mine);

/// The memory of the tiles: the backend's, the program's own pages, or those pages registered.
enum class TileMemory { allocated, callers, registered };

class Session {
public:
    /// The bytes of the tiles, if they are larger than the parts of them that move.
    struct TileBytes {
        Index source = 0;
        Index target = 0;
    };
    /// Collective. `backend` is the rank's own or a baseline's, and must outlive the mover. Errors, on all ranks: as
    /// Executor::prepare; infeasible (the machine lacks the memory); backend.
    [[nodiscard]] static Result<std::unique_ptr<Session>> make(Rank& rank, Backend& backend, const Judged<Plan>& plan,
                                                               const Storages& storages = {},
                                                               TileMemory tiles = TileMemory::allocated,
                                                               const TileBytes& least = {0, 0});

    /// The tiles in the program's memory. If the backend is on a device, they are copies, which a move brings to the
    /// device and back. After a move the contents of a donated source are unspecified.
    [[nodiscard]] std::span<std::byte> source() { return backend_.on_device() ? own_source_ : source_there(); }
    [[nodiscard]] std::span<std::byte> target() { return backend_.on_device() ? own_target_ : target_there(); }
    [[nodiscard]] const Accounted& accounted() const { return accounted_; }
    [[nodiscard]] const RankPlan& rank_plan() const { return executor_.plans().front(); }
    /// The time to register the tiles of this rank and to end the registration.
    [[nodiscard]] double register_seconds() const { return register_seconds_; }
    [[nodiscard]] std::string transport() const { return executor_.describe(); }

    /// Overwrites the target, so that its later contents come from the next move.
    void wipe();

    /// Collective: moves once. Returns the seconds from the barrier before it to the slowest rank's end.
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
