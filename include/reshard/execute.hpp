// Prepare a plan once, bind buffers, run it any number of times.
#pragma once

#include "reshard/backend.hpp"

namespace reshard {

/// Where the tiles of one array lie in the caller's buffers; row_major when not given. May differ from rank to rank.
struct Storages {
    std::optional<Storage> source;
    std::optional<Storage> target;
};

/// What rank `rank` does for one plan: schedules, places of the intermediates, sizes of the buffers. Slices become
/// views where another step follows; intermediates alternate between the target's memory and the workspace. Errors: as
/// check; mismatch and overflow from the storages.
[[nodiscard]] Result<RankPlan> lower(const Plan& plan, Index rank, const Storages& storages = {});

/// The same on all ranks.
struct PrepareOptions {
    /// Bytes a rank may hold for the list: sources, targets, workspace, and what the backend stages. A plan whose
    /// workspace does not fit runs as its one fused exchange, or, where it reduces, in pieces (pieces_within); windows
    /// become as small as they must.
    std::optional<Index> footprint_bytes_max = std::nullopt;
};

/// A list of plans ready to run on one rank of a backend. The backend must outlive it.
class Executor {
public:
    /// Collective. Judges and lowers each plan, compares fingerprints over all ranks, and prepares the backend.
    /// Errors: whatever check says; mismatch when ranks bring different plans or the backend has too few ranks;
    /// backend.
    /// Errors also: infeasible, with what is needed, when a footprint limit cannot be met on some rank.
    [[nodiscard]] static Result<Executor> prepare(std::span<const Plan> plans, Backend& backend,
                                                  std::span<const Storages> storages = {},
                                                  const PrepareOptions& options = {});
    [[nodiscard]] static Result<Executor> prepare(const Plan& plan, Backend& backend, const Storages& storages = {},
                                                  const PrepareOptions& options = {});

    /// What this rank runs, one per array. A plan that the backend runs as one fused exchange has that one step and no
    /// workspace; one that runs in pieces has the workspace of a piece.
    [[nodiscard]] std::span<const RankPlan> plans() const { return plans_; }
    /// In how many pieces the arrays run, all together; as many as there are arrays when none is cut.
    [[nodiscard]] std::size_t piece_count() const { return array_of_.size(); }
    [[nodiscard]] Index workspace_bytes() const;  ///< shared by the arrays of the list, which run one after another
    /// All that this rank holds for the list, exactly: sources + targets + workspace + staging.
    [[nodiscard]] Index footprint_bytes() const;
    [[nodiscard]] Index staging_bytes() const { return prepared_->staging_bytes(); }
    [[nodiscard]] std::string describe() const { return prepared_->describe(); }  ///< how bytes move, for people

    /// Binds one pair of buffers per array. Of all that is bound to an executor one run is in flight at a time. After a
    /// failed run nothing bound starts again: the executor must be prepared anew. Workspaces of the list may be the
    /// same memory. Errors: mismatch when a buffer is too small, or when what is written overlaps anything else.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);

    /// Bind, start and wait in one, for one array. Bytes outside the target tile stay untouched.
    [[nodiscard]] Result<void> run(std::span<const std::byte> source, std::span<std::byte> target,
                                   std::span<std::byte> workspace = {});

    struct RunState;  ///< whether a run is in flight or has failed; private to the executor

private:
    Executor() = default;
    std::vector<RankPlan> plans_;
    std::vector<std::size_t> array_of_;   // of each piece, as the backend counts them
    std::shared_ptr<Prepared> prepared_;  // also held by what was bound
    std::shared_ptr<RunState> state_;
};

}  // namespace reshard
