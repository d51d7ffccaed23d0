#include "src/execute/lower_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/execute/lower_judged.hpp"
#include "src/judge/live_bytes.hpp"
#include "src/judge/together.hpp"
#include "src/plan/split_run.hpp"
#include "src/schedule/piece_schedule.hpp"

namespace reshard {

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

Storage whole_storage(const Layout& layout, Index rank, const std::optional<Storage>& given) {
    return given && position_of(layout.mesh, rank) ? *given : row_major(tile(layout, rank));
}

// A part of a step that is cut box by box. Tiles stay in place.
RankPlan lower_part(const RankPlan& whole, const Split& split, std::size_t piece) {
    RankPlan part = whole;
    for (RankStep& step : part.steps) step.schedule = schedule_of(step.schedule, split, piece);
    return part;
}

void shift_workspace(RankPlan& plan, Index bytes) {
    for (RankStep& step : plan.steps)
        for (Slot* slot : {&step.from, &step.to})
            if (slot->buffer == BufferId::workspace) slot->offset_bytes += bytes;
}

// Two pieces that are on their way at once have a half of the workspace each. Returns what both take.
Index take_halves(std::vector<RankPlan>& pieces) {
    Index half = 0;
    for (const RankPlan& piece : pieces) half = std::max(half, piece.workspace_bytes);
    const Index all = saturating_multiply(half, std::min<Index>(std::ssize(pieces), 2));
    for (std::size_t place = 0; place < pieces.size(); ++place) {
        pieces[place].workspace_bytes = half == 0 ? 0 : all;
        if (place % 2 != 0) shift_workspace(pieces[place], half);
    }
    return all;
}

// A part of the workspace for each array that runs together with others, and their turn. pre: they run as steps.
void share_workspace(LoweredList& lowered, const ListPlan& list) {
    for (std::size_t turn = 0; turn < list.together.size(); ++turn) {
        std::vector<Index> own;
        for (const std::size_t array : list.together[turn]) own.push_back(lowered.arrays[array].workspace_bytes);
        const Parts parts = parts_of(own);
        for (std::size_t i = 0; i < own.size(); ++i) {
            RankPlan& plan = lowered.arrays[list.together[turn][i]];
            shift_workspace(plan, parts.offsets[i]);
            if (own[i] > 0) plan.workspace_bytes += parts.offsets[i];
            plan.turn = turn + 1;
        }
    }
    for (LoweredBucket& bucket : lowered.buckets)
        for (std::size_t i = 0; i < bucket.pieces.size(); ++i)
            if (const RankPlan& whole = lowered.arrays[bucket.array_of[i]]; whole.turn > 0) bucket.pieces[i] = whole;
}

// The pieces of a split, in the order of travel.
Result<std::vector<RankPlan>> lower_pieces(const Plan& plan, const Split& split, const RankPlan& whole, Index rank,
                                           const Storages& storages) {
    const bool keeps = keeps_blocks(split, plan);
    const Storage source = whole_storage(plan.source, rank, storages.source);
    const Storage target = whole_storage(plan.target, rank, storages.target);
    std::vector<RankPlan> pieces;
    for (std::size_t place = 0; place < split.ends.size(); ++place) {
        const std::size_t piece = piece_at(split, place);
        if (!keeps) {
            pieces.push_back(lower_part(whole, split, piece));
            continue;
        }
        RESHARD_TRY(auto& part, lower_judged(plan_of_piece(plan, split, piece), rank,
                                             {storage_of(source, split, piece), storage_of(target, split, piece)}));
        pieces.push_back(std::move(part));
    }
    return pieces;
}

// Adds what the array runs to its bucket; returns it as a whole.
Result<RankPlan> lower_into(LoweredBucket& bucket, const Plan& plan, const Execution& execution, std::size_t array,
                            Index rank, const Storages& storages, const MemoryPolicy& memory) {
    const bool one_exchange = std::holds_alternative<AsOneExchange>(execution);
    const Split* split = std::get_if<Split>(&execution);
    // A source that is donated takes no tiles of pieces.
    auto whole = lower_judged(one_exchange ? *as_one_exchange(plan) : plan, rank, storages,
                              split == nullptr ? memory : MemoryPolicy{});
    if (!whole) return whole;
    std::vector<RankPlan> pieces = {*whole};
    if (split != nullptr) {
        RESHARD_ASSIGN(pieces, lower_pieces(plan, *split, *whole, rank, storages));
        whole->workspace_bytes = 0;
        if (split->overlapped) {
            whole->workspace_bytes = take_halves(pieces);
            bucket.place_of.resize(pieces.size());
            for (std::size_t place = 0; place < pieces.size(); ++place)
                bucket.place_of[piece_at(*split, place)] = place;
        }
    }
    for (RankPlan& piece : pieces) {
        whole->workspace_bytes = std::max(whole->workspace_bytes, piece.workspace_bytes);
        bucket.pieces.push_back(std::move(piece));
        bucket.array_of.push_back(array);
    }
    return whole;
}

Result<void> fits_backend(const ListPlan& list, const Backend& backend, std::span<const Storages> storages) {
    if (!storages.empty() && storages.size() != list.plans.size())
        return fail(Code::mismatch, fmt::format("{} plans came with {} storages", list.plans.size(), storages.size()));
    for (const Plan& plan : list.plans)
        if (const Index devices = world_size(plan); devices > backend.size())
            return fail(Code::mismatch, fmt::format("the plan needs {} devices, the {} backend has {} ranks", devices,
                                                    backend.name(), backend.size()));
    return {};
}

// Deals what is left to the backend's staging; an error when the caller's own buffers leave nothing.
Result<void> deal_staging(LoweredList& lowered, const ListPlan& list, const MemoryPolicy& memory) {
    if (!memory.footprint_bytes_max) return {};
    const Index needed = bytes_of_buffers(lowered.arrays, list.buckets, memory.donate);
    if (needed > *memory.footprint_bytes_max) {
        return fail(Code::infeasible,
                    fmt::format("needs {} bytes on this rank, limit is {} bytes", needed, *memory.footprint_bytes_max));
    }
    Index room = *memory.footprint_bytes_max - needed;
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

Result<LoweredList> lower_list(const Judged<ListPlan>& judged, const Backend& backend,
                               std::span<const Storages> storages) {
    const ListPlan& list = judged.list();
    RESHARD_CHECK(fits_backend(list, backend, storages));
    LoweredList lowered{std::vector<RankPlan>(list.plans.size()), {}};
    for (const auto& arrays : list.buckets) {
        LoweredBucket& bucket = lowered.buckets.emplace_back();
        bucket.arrays = arrays;
        for (const std::size_t i : arrays) {
            RESHARD_ASSIGN(lowered.arrays[i],
                           lower_into(bucket, list.plans[i], execution_of(list, i), i, backend.rank(),
                                      storages.empty() ? Storages{} : storages[i], judged.memory()));
        }
    }
    share_workspace(lowered, list);
    RESHARD_CHECK(deal_staging(lowered, list, judged.memory()));
    return lowered;
}

}  // namespace reshard
