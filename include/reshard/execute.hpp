// Prepare a plan once, bind buffers, run it any number of times.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/planner/list.hpp"

namespace reshard {

/// Where the tiles of one array lie in the caller's buffers; row_major when not given. May differ from rank to rank.
struct Storages {
    std::optional<Storage> source;  ///< of the source buffer
    std::optional<Storage> target;  ///< of the target buffer
};

/// What rank `rank` does for one plan as steps: schedules, places of the intermediates, sizes of the buffers. Slices
/// become views where another step follows; intermediates lie in the target's memory, in the source's when that is
/// donated, and in the workspace. Errors: as check; mismatch and overflow from the storages.
[[nodiscard]] Result<RankPlan> lower(const Plan& plan, Index rank, const Storages& storages = {},
                                     const MemoryPolicy& memory = {});

/// A list of plans ready to run on one rank of a backend, in one or more buckets. The backend must outlive it.
class Executor {
public:
    /// Collective. Lowers each plan as it is to run, compares fingerprints over all ranks (plans, how they run, and the
    /// memory policy), and prepares the backend. A footprint limit holds for this rank's own buffers and for what the
    /// backend stages for all buckets; where that has little room, bounce buffers are as small as they must be. A run
    /// leaves nothing that is promised in donated sources, whether it needed them or not; they are bound as
    /// Buffers::donated, and overlap nothing else, but the target of a bucket may lie where the source of an earlier
    /// one was.
    /// Errors: whatever check says; mismatch when ranks bring different plans or the backend has too few ranks;
    /// backend; infeasible, with what is needed, when the limit cannot be met on some rank.
    /// Executors may be in flight side by side, and each rank may wait for them in an order of its own. Ranks that wait
    /// for one that fails, or drops the executor, are told within seconds.
    [[nodiscard]] static Result<Executor> prepare(const Judged<ListPlan>& list, Backend& backend,
                                                  std::span<const Storages> storages = {});
    /// The same of one plan.
    [[nodiscard]] static Result<Executor> prepare(const Judged<Plan>& plan, Backend& backend,
                                                  const Storages& storages = {});
    /// A list that is judged on the way in, and so are the plans of the calls below.
    [[nodiscard]] static Result<Executor> prepare(const ListPlan& list, Backend& backend,
                                                  std::span<const Storages> storages = {},
                                                  const MemoryPolicy& memory = {});
    /// One plan, run so.
    [[nodiscard]] static Result<Executor> prepare(const Plan& plan, const Execution& execution, Backend& backend,
                                                  const Storages& storages = {}, const MemoryPolicy& memory = {});
    /// All in one bucket, each plan as choose_execution says for what the backend can do.
    [[nodiscard]] static Result<Executor> prepare(std::span<const Plan> plans, Backend& backend,
                                                  std::span<const Storages> storages = {},
                                                  const MemoryPolicy& memory = {});
    /// One plan, as choose_execution says.
    [[nodiscard]] static Result<Executor> prepare(const Plan& plan, Backend& backend, const Storages& storages = {},
                                                  const MemoryPolicy& memory = {});

    /// What this rank runs, one per array. A plan that runs as one exchange has that one step and no workspace; a split
    /// one has the workspace of a piece.
    [[nodiscard]] std::span<const RankPlan> plans() const { return plans_; }
    /// In how many pieces the arrays run, all together; as many as there are arrays when none is cut.
    [[nodiscard]] std::size_t piece_count() const;
    /// What Ticket::arrived ends at: the pieces of an overlapped Split, or the buckets of the list.
    [[nodiscard]] std::size_t arrival_count() const;
    [[nodiscard]] std::size_t bucket_count() const { return arrays_.size(); }  ///< as many as the list has
    /// The arrays of a bucket, in the order in which they run.
    [[nodiscard]] std::span<const std::size_t> bucket(std::size_t number) const { return arrays_[number]; }
    [[nodiscard]] Index workspace_bytes() const;  ///< shared by the arrays of the list, which run one after another
    /// The most that this rank holds for the list, exactly: sources + targets + workspace + staging; with donation
    /// those that are held while the fullest bucket runs.
    [[nodiscard]] Index footprint_bytes() const;
    [[nodiscard]] Index staging_bytes() const;   ///< of all buckets
    [[nodiscard]] std::string describe() const;  ///< how bytes move, for people

    /// Binds one pair of buffers per array. Of all that is bound to an executor one run is in flight at a time. After a
    /// failed run nothing bound starts again: the executor must be prepared anew. Workspaces of the list may be the
    /// same memory, and so may sources that are not donated. Errors: mismatch when a buffer is too small, when a source
    /// is to be written and was not given so, when one that is needed is null, or when what is written overlaps
    /// anything else. Ranks that wait in a run for one whose bind failed are told, unless it starts within a second.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// The same of a list of one array.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(const Buffers& buffers) { return bind(std::span(&buffers, 1)); }
    /// Binds one bucket by itself: a pair of buffers for each of its arrays, in its order. Who frees sources on the way
    /// binds, runs and drops one bucket after the other, on every rank in the list's order.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::size_t bucket, std::span<const Buffers> buffers);

    /// This rank does not start a run, for a reason of its caller's. Ranks that wait for it in one are told, unless it
    /// starts within a second. Does nothing while a run is in flight and after one has failed.
    void excuse(const Error& why);

    /// Bind, start and wait in one, for one array. Bytes outside the target tile stay untouched. The workspace is the
    /// backend's memory, taken by the first run that needs one and kept. Errors also: mismatch when the elements are
    /// not of the array's type.
    [[nodiscard]] Result<void> run(ConstElements source, Elements target);
    /// The same with a workspace of the caller's.
    [[nodiscard]] Result<void> run(const Buffers& buffers);

    struct RunState;  ///< whether a run is in flight or has failed; private to the executor

private:
    // One bucket as the backend has it; also held by what was bound.
    struct Bucket {
        std::vector<std::size_t> array_of;                // of each piece
        std::vector<std::shared_ptr<Prepared>> prepared;  // one, or of pieces that overlap one each
        std::vector<std::size_t> place_of;                // of those, by number, where they travel
    };
    Executor() = default;
    [[nodiscard]] static Result<Executor> make(const Result<Judged<ListPlan>>& judged, Backend& backend,
                                               std::span<const Storages> storages);
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind_buckets(std::size_t first, std::size_t count,
                                                              std::span<const std::size_t> arrays,
                                                              std::span<const Buffers> buffers);
    [[nodiscard]] static Result<void> prepare_bucket(Bucket& bucket, std::vector<RankPlan> pieces, Backend& backend,
                                                     std::optional<Index> staging_room);
    [[nodiscard]] Result<std::unique_ptr<Bound>> try_bind(std::size_t first, std::size_t count,
                                                          std::span<const std::size_t> arrays,
                                                          std::span<const Buffers> buffers);

    std::vector<RankPlan> plans_;
    std::vector<std::vector<std::size_t>> arrays_;  // of each bucket
    std::vector<Bucket> buckets_;
    std::shared_ptr<RunState> state_;
    Backend* backend_ = nullptr;
    std::unique_ptr<Memory> workspace_;  // of runs that bring none
    bool donate_ = false;
};

}  // namespace reshard
