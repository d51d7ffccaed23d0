// Many arrays under one footprint limit: which of them run together, and in which order.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One plan an array, how each runs, and the buckets in which they run: the arrays of a bucket in one start, the
/// buckets one after the other. A plain value, like a plan.
struct ListPlan {
    std::vector<Plan> plans;                        ///< in the caller's order
    std::vector<std::vector<std::size_t>> buckets;  ///< numbers of plans, each in exactly one bucket; none is empty
    std::vector<Execution> executions = {};         ///< of each plan; all as steps where there are none
    /// Plans of one bucket that run step by step together and share messages, each with a part of the workspace of its
    /// own. All others that need a workspace have all of it, one after another.
    std::vector<std::vector<std::size_t>> together = {};
    friend bool operator==(const ListPlan&, const ListPlan&) = default;
};

/// How one of its plans runs. pre: array < list.plans.size().
[[nodiscard]] Execution execution_of(const ListPlan& list, std::size_t array);

/// All plans in one bucket, in order, as steps; no bucket for no plans.
[[nodiscard]] ListPlan in_one_bucket(std::vector<Plan> plans);

/// One more than the largest device of any plan.
[[nodiscard]] Index world_size(const ListPlan& list);

/// 64-bit hash of what decides what the ranks do: plans, order, how they run, and the memory they may take. Equal on
/// every machine.
[[nodiscard]] std::uint64_t fingerprint(const ListPlan& list, const MemoryPolicy& memory = {});

/// The list with an execution chosen for each plan (choose_execution), by what its bucket leaves beside the ends that
/// are held while it runs, and the plans that run together, where the backend gains by it and memory allows. A list
/// that is none is left as it is, for the judge to refuse.
[[nodiscard]] ListPlan choose_executions(ListPlan list, const Capabilities& capabilities,
                                         const MemoryPolicy& memory = {});

/// Groups for ListPlan::together: plans of several steps without sums, bucket by bucket, whose workspaces fit into what
/// the largest array of the bucket needs, or into what memory leaves. Without a limit that is 16 MiB: messages of
/// larger arrays are full anyway. With one it is what is left beside the ends and `staging_bytes`, and nothing where
/// that is 0. None where the backend gains nothing by it (Capabilities::steps_overlap). pre: each plan is in one
/// bucket.
[[nodiscard]] std::vector<std::vector<std::size_t>> choose_together(const ListPlan& list,
                                                                    const Capabilities& capabilities,
                                                                    const MemoryPolicy& memory = {});

/// The traffic of a list's busiest devices. Each figure is summed over all arrays and steps for each device, and the
/// largest sum is kept. The busiest receiver and the busiest sender may be two devices.
struct ListLoad {
    Index received_bytes = 0;    ///< by one device
    Index sent_bytes = 0;        ///< by one device
    Index messages = 0;          ///< peers that one device receives from, step by step; at most
    bool received_exact = true;  ///< false: there was too much to count, and no device receives more
    bool sent_exact = true;      ///< false: no device sends more
    friend bool operator==(const ListLoad&, const ListLoad&) = default;
};

/// What the judge derived of a list. Bytes, of full tiles; the most that any device holds.
struct ListVerdict {
    std::vector<Verdict> plans;          ///< of each plan as it runs
    std::vector<Index> bucket_bytes;     ///< held while the bucket runs: sources, targets, workspace (no staging)
    Index footprint_bytes = 0;           ///< the largest of those
    Index ends_bytes = 0;                ///< the same without workspaces
    std::vector<ListLoad> bucket_loads;  ///< of the arrays of each bucket
    ListLoad load;                       ///< of all arrays
    /// No protocol moves all arrays such that every device receives less. load.received_bytes where both are equal is
    /// the best there is.
    Index lower_bound_bytes = 0;
    friend bool operator==(const ListVerdict&, const ListVerdict&) = default;
};

/// Judges every plan, and what the list holds. The arrays of a bucket share a workspace, those that run together its
/// parts. Errors: as check of a plan, the array named; plan (an array in no bucket, or in two, or an empty bucket;
/// another number of executions than plans; arrays that cannot run together); infeasible (the first bucket over the
/// limit, and what it needs).
[[nodiscard]] Result<ListVerdict> check(const ListPlan& list, const MemoryPolicy& memory = {});
/// As check, with all that the verdict is of; every execution is written down.
[[nodiscard]] Result<Judged<ListPlan>> judge(const ListPlan& list, const MemoryPolicy& memory = {});
/// The list of plans that were judged one by one, which are not judged again.
[[nodiscard]] Result<Judged<ListPlan>> judge(std::span<const Judged<Plan>> plans,
                                             std::vector<std::vector<std::size_t>> buckets,
                                             const MemoryPolicy& memory = {},
                                             std::vector<std::vector<std::size_t>> together = {});

/// A list that keeps this policy. Copies share it.
template <>
class Judged<ListPlan> {
public:
    Judged(const Judged&) = default;             ///< as of a plan
    Judged& operator=(const Judged&) = default;  ///< likewise

    [[nodiscard]] const ListPlan& list() const { return passed_->list; }           ///< that was judged
    [[nodiscard]] const ListVerdict& verdict() const { return passed_->verdict; }  ///< of the list
    [[nodiscard]] const MemoryPolicy& memory() const { return passed_->memory; }   ///< which it keeps

private:
    friend Result<Judged<ListPlan>> judge(const ListPlan& list, const MemoryPolicy& memory);
    friend Result<Judged<ListPlan>> judge(std::span<const Judged<Plan>> plans,
                                          std::vector<std::vector<std::size_t>> buckets, const MemoryPolicy& memory,
                                          std::vector<std::vector<std::size_t>> together);
    struct Passed {
        ListPlan list;
        ListVerdict verdict;
        MemoryPolicy memory;
    };
    explicit Judged(Passed passed) : passed_(std::make_shared<const Passed>(std::move(passed))) {}

    std::shared_ptr<const Passed> passed_;
};

/// One device for each combination of the ends' meshes that some device is in. Counted in full tiles, every device
/// holds what one of these holds.
[[nodiscard]] std::vector<Index> typical_devices(std::span<const Plan> plans);

}  // namespace reshard
