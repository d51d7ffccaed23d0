// Prepare a plan once, bind buffers, run it any number of times.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/planner/list.hpp"

namespace reshard {

struct NodeMove;

/// The places of one array's tiles in the caller's buffers; row_major if not given. May differ from rank to rank.
struct Storages {
    std::optional<Storage> source;  ///< of the source buffer
    std::optional<Storage> target;  ///< of the target buffer
};

/// The work of rank `rank` for one plan as steps: schedules, places of the intermediates, sizes of the buffers. Slices
/// become views if another step follows. Intermediates lie in the target's memory, in a donated source's memory, and in
/// the workspace. Errors: as check; mismatch and overflow from the storages.
[[nodiscard]] Result<RankPlan> lower(const Plan& plan, Index rank, const Storages& storages = {},
                                     const MemoryPolicy& memory = {});

/// A list of plans ready to run on one rank of a backend, in one or more buckets. The backend must outlive it.
class Executor {
public:
    /// Collective. Lowers each plan as it is to run, compares fingerprints over all ranks (plans, executions, memory
    /// policy), and prepares the backend. A footprint limit covers this rank's own buffers and the staging of
    /// the backend for all buckets; bounce buffers shrink to fit. After a run the contents of donated sources are
    /// unspecified. They are bound as Buffers::donated and overlap nothing else. One exception: the target of a bucket
    /// may lie where the source of an earlier one was.
    /// The argument may be the result of `judge`. A rank whose plan did not pass then tells the other ranks.
    /// Errors: the judge's; mismatch if ranks bring different plans or the backend has too few ranks; backend;
    /// infeasible, with the bytes that are needed, if some rank cannot keep the limit.
    /// Executors may be in flight side by side, and each rank may wait for them in an order of its own. If one fails or
    /// its executor is dropped, the ranks that wait for it learn of this within seconds.
    [[nodiscard]] static Result<Executor> prepare(const Result<Judged<ListPlan>>& list, Backend& backend,
                                                  std::span<const Storages> storages = {});
    /// The same for one plan.
    [[nodiscard]] static Result<Executor> prepare(const Result<Judged<Plan>>& plan, Backend& backend,
                                                  const Storages& storages = {});

    /// The same for a move through nodes (boxes/nodes.hpp). The workspace is its staging memory.
    [[nodiscard]] static Result<Executor> prepare_through_nodes(const Result<NodeMove>& move, Backend& backend,
                                                                const Storages& storages = {});

    /// The work of this rank, one entry per array. A plan that runs as one exchange has that one step and no workspace.
    /// A split plan has the workspace of a piece.
    [[nodiscard]] std::span<const RankPlan> plans() const { return plans_; }
    /// The number of pieces of all arrays together. It is the number of arrays if none is cut.
    [[nodiscard]] std::size_t piece_count() const;
    /// The final value of Ticket::arrived: the pieces of an overlapped Split, or the buckets of the list.
    [[nodiscard]] std::size_t arrival_count() const;
    [[nodiscard]] std::size_t bucket_count() const { return arrays_.size(); }  ///< of the list
    /// The arrays of a bucket, in the order in which they run.
    [[nodiscard]] std::span<const std::size_t> bucket(std::size_t number) const { return arrays_[number]; }
    [[nodiscard]] Index workspace_bytes() const;  ///< shared by the arrays of the list, which run one after another
    /// The exact maximum that this rank holds for the list: sources + targets + workspace + staging. With donation it
    /// is the sum while the fullest bucket runs.
    [[nodiscard]] Index footprint_bytes() const;
    [[nodiscard]] Index staging_bytes() const;   ///< of all buckets
    [[nodiscard]] std::string describe() const;  ///< how bytes move, for people

    /// Binds one pair of buffers per array. An executor has one run in flight at a time, however many buffers are
    /// bound. After a failed run no bound buffers start again: the executor must be prepared anew. Workspaces of the
    /// list may share memory, and so may sources that are not donated. Errors: mismatch if a buffer is too small, a
    /// donated source is not given as Buffers::donated, a needed buffer is null, or memory that is written overlaps any
    /// other. If bind fails and this rank does not start within a second, the ranks that wait for it in a run are told.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// The same for a list of one array.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(const Buffers& buffers) { return bind(std::span(&buffers, 1)); }
    /// Binds one bucket: a pair of buffers for each of its arrays, in its order. A caller that frees sources on the way
    /// binds, runs and drops one bucket after the other, on every rank in the list's order.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::size_t bucket, std::span<const Buffers> buffers);

    /// Says that this rank does not start a run, for a reason of its caller's. Ranks that wait for it are told, unless
    /// it starts within a second. Does nothing while a run is in flight and after one has failed.
    void report_failure(const Error& why);

    /// Says that this rank takes part in no further run, for a reason of its caller's. A run in flight fails with it.
    /// Ranks that wait for this rank are told at once. Does nothing after a run has failed.
    void abandon(const Error& why);

    /// Binds, starts and waits, for one array. Bytes outside the target tile stay untouched. The workspace is memory of
    /// the backend. The first run that needs it allocates it, and the executor keeps it. Errors also: mismatch if the
    /// elements are not of the array's type.
    [[nodiscard]] Result<void> run(ConstElements source, Elements target);
    /// The same with a workspace of the caller's.
    [[nodiscard]] Result<void> run(const Buffers& buffers);
    /// The same, but the run begins as Bound::start_if does. Errors also: as `agreed` returns.
    [[nodiscard]] Result<void> run_if(const Buffers& buffers, const Agreed& agreed);

    struct RunState;  ///< whether a run is in flight or has failed; private to the executor

private:
    // One bucket, prepared. Bound buffers hold it too.
    struct Bucket {
        std::vector<std::size_t> array_of;                // of each piece
        std::vector<std::shared_ptr<Prepared>> prepared;  // one, or of pieces that overlap one each
        std::vector<std::size_t> place_of;                // of pieces, by number, in the order of travel
    };
    Executor() = default;
    [[nodiscard]] Result<void> run(const Buffers& buffers, const Agreed* agreed);
    [[nodiscard]] bool moves_at_once(const Buffers& buffers, bool agrees) const;
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
