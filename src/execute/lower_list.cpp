#include "src/execute/lower_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/plan/buffer_assignment.hpp"
#include "src/plan/live_bytes.hpp"
#include "src/plan/split_run.hpp"

namespace reshard {

void run_fused(RankPlan& plan) {
    plan.steps = {*plan.fused};
    plan.workspace_bytes = 0;
}

Index bytes_of_buffers(std::span<const RankPlan> plans, std::span<const std::vector<std::size_t>> buckets,
                       bool donate) {
    std::vector<EndBytes> ends;
    for (const RankPlan& plan : plans) ends.push_back({plan.source_bytes, plan.target_bytes});
    const std::vector<Index> held = held_on_device(ends, buckets, donate);
    Index most = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        Index workspace = 0;
        for (const std::size_t array : buckets[b]) workspace = std::max(workspace, plans[array].workspace_bytes);
        most = std::max(most, saturating_add(held[b], workspace));
    }
    return most;
}

namespace {

Result<std::vector<RankPlan>> lower_all(std::span<const Plan> plans, const Backend& backend,
                                        std::span<const Storages> storages, bool donate) {
    if (!storages.empty() && storages.size() != plans.size()) {
        return fail(Code::mismatch, fmt::format("{} plans came with {} storages", plans.size(), storages.size()));
    }
    std::vector<RankPlan> lowered;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        auto plan = lower(plans[i], backend.rank(), storages.empty() ? Storages{} : storages[i], donate);
        if (!plan) return tl::unexpected(plan.error());
        if (const Index devices = world_size(plans[i]); devices > backend.size()) {
            return fail(Code::mismatch, fmt::format("the plan needs {} devices, the {} backend has {} ranks", devices,
                                                    backend.name(), backend.size()));
        }
        lowered.push_back(std::move(*plan));
    }
    return lowered;
}

// What a limit leaves to the workspace of a bucket, and whether its sources help.
struct WorkspaceRoom {
    Index bytes = index_max;
    bool donate = false;
};

// Without their workspaces if with them the bucket would not fit.
void fuse_within(LoweredList& list, const LoweredBucket& bucket, std::span<const Plan> plans,
                 const WorkspaceRoom& room) {
    Index workspace = 0;
    for (const std::size_t array : bucket.arrays) {
        const Plan& plan = plans[array];
        workspace = std::max(workspace, assign_buffers(plan, capacities_of(plan, room.donate)).workspace_bytes);
    }
    if (workspace <= room.bytes) return;
    for (const std::size_t array : bucket.arrays) {
        if (list.arrays[array].fused) run_fused(list.arrays[array]);
    }
}

Storage whole_storage(const Layout& layout, Index rank, const std::optional<Storage>& given) {
    return given && position_of(layout.mesh, rank) ? *given : row_major(tile(layout, rank));
}

// The plan in pieces, and the workspace of one of them noted in `whole`.
Result<void> add_pieces(LoweredBucket& bucket, RankPlan& whole, const Plan& plan, const SplitPlan& pieces, Index rank,
                        const Storages& storages, std::size_t array) {
    const Storage source = whole_storage(plan.source, rank, storages.source);
    const Storage target = whole_storage(plan.target, rank, storages.target);
    whole.workspace_bytes = 0;
    for (Index piece = 0; piece < pieces.count; ++piece) {
        auto part = lower(plan_of(plan, pieces, piece), rank,
                          {storage_of(source, pieces, piece), storage_of(target, pieces, piece)});
        if (!part) return tl::unexpected(part.error());
        part->fused.reset();
        whole.workspace_bytes = std::max(whole.workspace_bytes, part->workspace_bytes);
        bucket.pieces.push_back(std::move(*part));
        bucket.array_of.push_back(array);
    }
    return {};
}

// The bucket's arrays, those cut that do not fit otherwise.
Result<void> cut_within(LoweredList& list, LoweredBucket& bucket, std::span<const Plan> plans, Index rank,
                        std::span<const Storages> storages, const WorkspaceRoom& room) {
    for (const std::size_t i : bucket.arrays) {
        const bool runs_fused = list.arrays[i].fused && list.arrays[i].steps.size() == 1;
        std::optional<SplitPlan> pieces;
        if (!runs_fused) pieces = split_within(plans[i], saturating_add(full_ends(plans[i]), room.bytes), room.donate);
        if (pieces && pieces->count > 1) {
            const Storages given = storages.empty() ? Storages{} : storages[i];
            auto added = add_pieces(bucket, list.arrays[i], plans[i], *pieces, rank, given, i);
            if (!added) return added;
            continue;
        }
        bucket.pieces.push_back(list.arrays[i]);
        bucket.array_of.push_back(i);
    }
    return {};
}

// Deals what is left to the backend's staging; an error when the caller's own buffers leave nothing.
Result<void> deal_staging(LoweredList& lowered, const ListPlan& list, const PrepareOptions& options) {
    if (!options.footprint_bytes_max) return {};
    const Index needed = bytes_of_buffers(lowered.arrays, list.buckets, options.donate);
    if (needed > *options.footprint_bytes_max) {
        return fail(Code::infeasible, fmt::format("needs {} bytes on this rank, limit is {} bytes", needed,
                                                  *options.footprint_bytes_max));
    }
    Index room = *options.footprint_bytes_max - needed;
    std::size_t arrays = list.plans.size();
    for (LoweredBucket& bucket : lowered.buckets) {
        const auto own = static_cast<Index>(bucket.arrays.size());
        const auto all = static_cast<Index>(std::max<std::size_t>(arrays, 1));
        bucket.staging_room = bucket.arrays.size() == arrays ? room : room / all * own;
        room -= bucket.staging_room;
        arrays -= bucket.arrays.size();
    }
    return {};
}

}  // namespace

Result<LoweredList> lower_list(const ListPlan& list, const Backend& backend, std::span<const Storages> storages,
                               const PrepareOptions& options) {
    if (auto once = each_in_one_bucket(list); !once) return tl::unexpected(once.error());
    auto arrays = lower_all(list.plans, backend, storages, options.donate);
    if (!arrays) return tl::unexpected(arrays.error());
    LoweredList lowered{std::move(*arrays), {}};
    const std::vector<Index> held = ends_held(list.plans, list.buckets, options.donate);
    for (std::size_t b = 0; b < list.buckets.size(); ++b) {
        LoweredBucket& bucket = lowered.buckets.emplace_back();
        bucket.arrays = list.buckets[b];
        const Index limit = options.footprint_bytes_max.value_or(index_max);
        const WorkspaceRoom room{limit - std::min(limit, held[b]), options.donate};
        fuse_within(lowered, bucket, list.plans, room);
        auto cut = cut_within(lowered, bucket, list.plans, backend.rank(), storages, room);
        if (!cut) return tl::unexpected(cut.error());
    }
    if (auto dealt = deal_staging(lowered, list, options); !dealt) return tl::unexpected(dealt.error());
    return lowered;
}

}  // namespace reshard
