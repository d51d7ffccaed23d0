// Many arrays under one footprint limit: which of them run together, and in which order.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One plan an array, and the buckets in which they run: the arrays of a bucket in one start, the buckets one after the
/// other. A plain value, like a plan.
struct ListPlan {
    std::vector<Plan> plans;                        ///< in the caller's order
    std::vector<std::vector<std::size_t>> buckets;  ///< numbers of plans, each in exactly one bucket; none is empty
    friend bool operator==(const ListPlan&, const ListPlan&) = default;
};

/// All plans in one bucket, in order; no bucket for no plans.
[[nodiscard]] ListPlan in_one_bucket(std::vector<Plan> plans);

/// One more than the largest device of any plan.
[[nodiscard]] Index world_size(const ListPlan& list);

/// 64-bit hash of what decides what the ranks do, order included. Equal on every machine.
[[nodiscard]] std::uint64_t fingerprint(const ListPlan& list);

/// Bounds on what a device holds for the whole list.
struct ListLimits {
    std::optional<Index> footprint_bytes_max = std::nullopt;  ///< bytes a device; none when empty
    /// The caller frees the sources of a bucket once it is done, and takes memory for targets just before their bucket
    /// starts. Else all ends are held all the time. As in Limits, sources take tiles between steps while their bucket
    /// runs.
    bool donate = false;
    Index staging_bytes = 0;  ///< of the limit, kept free for the backend
};

/// What the judge derived of a list. Bytes, of full tiles; the most that any device holds.
struct ListVerdict {
    std::vector<Verdict> plans;       ///< of each plan, its workspace as small as its bucket needs
    std::vector<Index> bucket_bytes;  ///< held while the bucket runs: sources, targets, workspace (no staging)
    Index footprint_bytes = 0;        ///< the largest of those
    Index ends_bytes = 0;             ///< the same without workspaces
    Index messages = 0;               ///< the sum over all steps of the peers that a device receives from
    Index received_bytes = 0;         ///< the sum over all steps of the busiest receiver's bytes
    friend bool operator==(const ListVerdict&, const ListVerdict&) = default;
};

/// Judges every plan, and what the list holds. The arrays of a bucket share a workspace, and a plan whose workspace is
/// more than its bucket leaves is accepted when it keeps within that in pieces.
/// Errors: as check of a plan, the array named; plan (an array in no bucket, or in two, or an empty bucket); infeasible
/// (the first bucket over the limit, and what it needs).
[[nodiscard]] Result<ListVerdict> check(const ListPlan& list, const ListLimits& limits = {});

/// One device for each combination of the ends' meshes that some device is in. Counted in full tiles, every device
/// holds what one of these holds.
[[nodiscard]] std::vector<Index> typical_devices(std::span<const Plan> plans);

}  // namespace reshard
