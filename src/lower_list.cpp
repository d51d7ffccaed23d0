#include "lower_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "piecewise.hpp"
#include "placement.hpp"

namespace reshard {

Index most_workspace(std::span<const RankPlan> plans) {
    Index bytes = 0;
    for (const RankPlan& plan : plans) bytes = std::max(bytes, plan.workspace_bytes);
    return bytes;
}

Index bytes_of_ends(std::span<const RankPlan> plans) {
    Index bytes = 0;
    for (const RankPlan& plan : plans) {
        bytes = saturating_add(bytes, saturating_add(plan.source_bytes, plan.target_bytes));
    }
    return bytes;
}

void run_fused(RankPlan& plan) {
    plan.steps = {*plan.fused};
    plan.workspace_bytes = 0;
}

namespace {

Result<std::vector<RankPlan>> lower_all(std::span<const Plan> plans, const Backend& backend,
                                        std::span<const Storages> storages) {
    if (!storages.empty() && storages.size() != plans.size()) {
        return fail(Code::mismatch, fmt::format("{} plans came with {} storages", plans.size(), storages.size()));
    }
    std::vector<RankPlan> lowered;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        auto plan = lower(plans[i], backend.rank(), storages.empty() ? Storages{} : storages[i]);
        if (!plan) return tl::unexpected(plan.error());
        if (const Index devices = world_size(plans[i]); devices > backend.size()) {
            return fail(Code::mismatch, fmt::format("the plan needs {} devices, the {} backend has {} ranks", devices,
                                                    backend.name(), backend.size()));
        }
        lowered.push_back(std::move(*plan));
    }
    return lowered;
}

// Without their workspaces if with them the list would not fit. What decides is the same on all ranks: full tiles.
void fuse_within(std::vector<RankPlan>& lowered, std::span<const Plan> plans, Index footprint_bytes_max) {
    Index workspace = 0;
    for (const Plan& plan : plans) {
        workspace = std::max(workspace, place_tiles(plan, target_room_bytes(plan)).workspace_bytes);
    }
    Index full = workspace;
    for (const Plan& plan : plans) {
        full = saturating_add(full, saturating_add(tile_bytes(plan.source), tile_bytes(plan.target)));
    }
    if (full <= footprint_bytes_max) return;
    for (RankPlan& plan : lowered) {
        if (plan.fused) run_fused(plan);
    }
}

Storage whole_storage(const Layout& layout, Index rank, const std::optional<Storage>& given) {
    return given && position_of(layout.mesh, rank) ? *given : row_major(tile(layout, rank));
}

// The plan in pieces, and the workspace of one of them noted in `whole`.
Result<void> add_pieces(LoweredList& list, RankPlan& whole, const Plan& plan, const Pieces& pieces, Index rank,
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
        list.pieces.push_back(std::move(*part));
        list.array_of.push_back(array);
    }
    return {};
}

// Cuts what does not fit otherwise. What decides is the same on all ranks: full tiles.
Result<void> cut_within(LoweredList& list, std::span<const Plan> plans, Index rank, std::span<const Storages> storages,
                        const PrepareOptions& options) {
    const auto ends_of = [](const Plan& plan) {
        return saturating_add(tile_bytes(plan.source), tile_bytes(plan.target));
    };
    Index ends = 0;
    for (const Plan& plan : plans) ends = saturating_add(ends, ends_of(plan));
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const bool runs_fused = list.arrays[i].fused && list.arrays[i].steps.size() == 1;
        std::optional<Pieces> pieces;
        if (options.footprint_bytes_max && !runs_fused) {
            const Index others = std::min(*options.footprint_bytes_max, ends - ends_of(plans[i]));
            pieces = pieces_within(plans[i], *options.footprint_bytes_max - others);
        }
        if (pieces && pieces->count > 1) {
            const Storages given = storages.empty() ? Storages{} : storages[i];
            auto added = add_pieces(list, list.arrays[i], plans[i], *pieces, rank, given, i);
            if (!added) return added;
            continue;
        }
        list.pieces.push_back(list.arrays[i]);
        list.array_of.push_back(i);
    }
    return {};
}

// What is left for the backend's staging; an error when the caller's own buffers leave nothing.
Result<Index> staging_room(std::span<const RankPlan> plans, const PrepareOptions& options) {
    if (!options.footprint_bytes_max) return index_max;
    const Index needed = saturating_add(bytes_of_ends(plans), most_workspace(plans));
    if (needed <= *options.footprint_bytes_max) return *options.footprint_bytes_max - needed;
    return fail(Code::infeasible,
                fmt::format("needs {} bytes on this rank, limit is {} bytes", needed, *options.footprint_bytes_max));
}

}  // namespace

Result<LoweredList> lower_list(std::span<const Plan> plans, const Backend& backend, std::span<const Storages> storages,
                               const PrepareOptions& options) {
    auto lowered = lower_all(plans, backend, storages);
    if (!lowered) return tl::unexpected(lowered.error());
    LoweredList list;
    list.arrays = std::move(*lowered);
    if (options.footprint_bytes_max) fuse_within(list.arrays, plans, *options.footprint_bytes_max);
    if (auto cut = cut_within(list, plans, backend.rank(), storages, options); !cut) return tl::unexpected(cut.error());
    const auto room = staging_room(list.arrays, options);
    if (!room) return tl::unexpected(room.error());
    list.staging_room = *room;
    return list;
}

}  // namespace reshard
