// Many arrays under one footprint limit: which arrays run together, and in which order.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One plan per array, how each plan runs, and the buckets in which they run. The arrays of a bucket run in one start,
/// the buckets one after the other. A plain value, like a plan.
struct ListPlan {
    std::vector<Plan> plans;                        ///< in the caller's order
    std::vector<std::vector<std::size_t>> buckets;  ///< numbers of plans, each in exactly one bucket; no empty bucket
    std::vector<Execution> executions = {};         ///< one per plan; empty: all run as steps
    /// Groups of plans in one bucket. The plans of a group run step by step together and share messages; each has its
    /// own part of the workspace. Other plans use the whole workspace, one after another.
    std::vector<std::vector<std::size_t>> together = {};
    friend bool operator==(const ListPlan&, const ListPlan&) = default;
};

/// How plan number `array` runs. pre: array < list.plans.size().
[[nodiscard]] Execution execution_of(const ListPlan& list, std::size_t array);

/// All plans in one bucket, in order, as steps. An empty list has no bucket.
[[nodiscard]] ListPlan in_one_bucket(std::vector<Plan> plans);

/// One more than the largest device of any plan.
[[nodiscard]] Index world_size(const ListPlan& list);

/// A 64-bit hash of everything that decides what the ranks do: plans, their order, how they run, and the memory limit.
/// Equal on every machine.
[[nodiscard]] std::uint64_t fingerprint(const ListPlan& list, const MemoryPolicy& memory = {});

/// The list with an execution chosen for each plan (choose_execution), within the memory that its bucket leaves beside
/// the sources and targets held meanwhile. Also chooses the plans that run together, if the backend gains by it and
/// memory allows. An invalid list is returned unchanged, for the judge to refuse.
[[nodiscard]] ListPlan choose_executions(ListPlan list, const Capabilities& capabilities,
                                         const MemoryPolicy& memory = {});

/// Groups for ListPlan::together, bucket by bucket: plans of several steps without sums. Their workspaces fit into what
/// the largest array of the bucket needs, or into the free memory. Free memory counts up to 16 MiB, because messages of
/// larger arrays are full anyway. Under a limit it is what the ends and `staging_bytes` leave, and 0 if `staging_bytes`
/// is 0. Empty if the backend gains nothing by it (Capabilities::steps_overlap). pre: each plan is in one bucket.
[[nodiscard]] std::vector<std::vector<std::size_t>> choose_together(const ListPlan& list,
                                                                    const Capabilities& capabilities,
                                                                    const MemoryPolicy& memory = {});

/// The traffic of a list's busiest devices. Each figure is summed over all arrays and steps for each device; the
/// largest sum is kept. The busiest receiver and the busiest sender may be two devices.
struct ListLoad {
    Index received_bytes = 0;    ///< the most that one device receives
    Index sent_bytes = 0;        ///< the most that one device sends
    Index messages = 0;          ///< the most peers that one device receives from, counted in each step
    bool received_exact = true;  ///< false: too much to count, and received_bytes is an upper bound
    bool sent_exact = true;      ///< false: sent_bytes is an upper bound
    friend bool operator==(const ListLoad&, const ListLoad&) = default;
};

/// The judge's result for a list, in bytes of full tiles. Memory figures are the most that any device holds.
struct ListVerdict {
    std::vector<Verdict> plans;          ///< one per plan, with its execution
    std::vector<Index> bucket_bytes;     ///< held while each bucket runs: sources, targets, workspace (no staging)
    Index footprint_bytes = 0;           ///< the largest of bucket_bytes
    Index ends_bytes = 0;                ///< the same without workspaces
    std::vector<ListLoad> bucket_loads;  ///< one per bucket, over its arrays
    ListLoad load;                       ///< over all arrays
    /// In any protocol that moves all arrays, some device receives at least this. If load.received_bytes equals it, no
    /// protocol is better.
    Index lower_bound_bytes = 0;
    friend bool operator==(const ListVerdict&, const ListVerdict&) = default;
};

/// Judges every plan, and the memory of the list. The arrays of a bucket share a workspace; arrays that run together
/// each have a part of it. Errors: as check of a plan, with the array named; plan (an array in no bucket or in two, an
/// empty bucket, a number of executions that is not the number of plans, arrays that cannot run together); infeasible
/// (the first bucket over the limit, with the bytes it needs).
[[nodiscard]] Result<ListVerdict> check(const ListPlan& list, const MemoryPolicy& memory = {});
/// As check, but returns the list and the policy together with the verdict. The list has an execution for every plan.
[[nodiscard]] Result<Judged<ListPlan>> judge(const ListPlan& list, const MemoryPolicy& memory = {});
/// A list of plans that were judged one by one. The plans are not judged again.
[[nodiscard]] Result<Judged<ListPlan>> judge(std::span<const Judged<Plan>> plans,
                                             std::vector<std::vector<std::size_t>> buckets,
                                             const MemoryPolicy& memory = {},
                                             std::vector<std::vector<std::size_t>> together = {});

/// A list that keeps this memory policy. Copies share it.
template <>
class Judged<ListPlan> {
public:
    Judged(const Judged&) = default;             ///< a move copies too, as in Judged<Plan>
    Judged& operator=(const Judged&) = default;  ///< the same

    [[nodiscard]] const ListPlan& list() const { return passed_->list; }           ///< the list that was judged
    [[nodiscard]] const ListVerdict& verdict() const { return passed_->verdict; }  ///< the result of the judge
    [[nodiscard]] const MemoryPolicy& memory() const { return passed_->memory; }   ///< the policy that it keeps

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

/// One device for each combination of the ends' meshes that has devices. In full tiles, every device holds as much as
/// one of these.
[[nodiscard]] std::vector<Index> typical_devices(std::span<const Plan> plans);

}  // namespace reshard
