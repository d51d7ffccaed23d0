// A move through nodes on a backend: its exchanges as steps of one plan, with the staging as workspace.
#include <optional>

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "reshard/execute.hpp"
#include "src/base/try.hpp"
#include "src/boxes/routes.hpp"
#include "src/execute/boxes/lower_boxes.hpp"
#include "src/execute/bucket_run.hpp"
#include "src/execute/caller_array.hpp"

namespace reshard {

namespace {

// The places of numbered boxes in the storage of a tile. The number has no stride.
std::vector<Storage> places_in(const Tile& tile, const Storage& whole, const std::vector<Box>& boxes) {
    std::vector<Storage> places;
    for (const Box& box : boxes) {
        Storage& place = places.emplace_back();
        place.offset = offset_of(whole, tile, Box(box.begin() + 1, box.end()));
        place.strides = {0};
        place.strides.insert(place.strides.end(), whole.strides.begin(), whole.strides.end());
    }
    return places;
}

// The places of boxes that lie one after another in the staging, from an element on.
std::vector<Storage> places_from(Index element, const std::vector<Box>& boxes) {
    std::vector<Storage> places;
    for (const Box& box : boxes) {
        places.push_back(row_major(as_tile(box)));
        places.back().offset = element;
        element += count(box);
    }
    return places;
}

Index elements_of(const std::vector<Box>& boxes) {
    Index elements = 0;
    for (const Box& box : boxes) elements += count(box);
    return elements;
}

// The places in the staging of the boxes that this rank has and wants on the way.
struct Staged {
    std::vector<Storage> spread;   // wanted in `spread`
    std::vector<Storage> relayed;  // owned in `fetch`, if there are relays
    std::vector<Storage> fetched;  // wanted in `fetch`
    std::vector<Storage> shared;   // owned in `share`
    Index elements = 0;
};

Staged staged_on(const NodeMove& move, std::size_t rank) {
    const std::vector<Box>& spread = move.spread.ranks[rank].want;
    const std::vector<Box>& fetched = move.fetch.ranks[rank].want;
    Staged staged;
    staged.spread = places_from(0, spread);
    staged.fetched = places_from(elements_of(spread), fetched);
    staged.elements = elements_of(spread) + elements_of(fetched);
    if (move.way.relays)
        for (const std::size_t box : move.relayed[rank]) staged.relayed.push_back(staged.spread[box]);
    for (std::size_t i = 0; i < spread.size(); ++i)
        if (spread[i].front().begin > 0) staged.shared.push_back(staged.spread[i]);
    staged.shared.insert(staged.shared.end(), staged.fetched.begin(), staged.fetched.end());
    return staged;
}

// One exchange of the move.
Result<RankStep> step_of(const BoxTable& table, Index rank, const BoxStorages& places, BufferId from, BufferId to) {
    const BoxRoutes routes(table);
    RESHARD_CHECK(routes.check(rank));
    RESHARD_TRY(auto& lowered, lower_boxes(table, routes, rank, places));
    RankStep step = std::move(lowered.rounds.front().steps.front());
    step.from.buffer = from;
    step.to.buffer = to;
    return step;
}

// A tile of this rank, and its place in the caller's buffer.
struct CallersTile {
    Tile tile;
    Storage storage;
    Index bytes = 0;  // least size of the buffer
};

Result<CallersTile> end_of(const Layout& layout, Index rank, const std::optional<Storage>& given,
                           std::string_view name) {
    CallersTile end{tile(layout, rank), {}, 0};
    end.storage = given.value_or(row_major(end.tile));
    RESHARD_ASSIGN(end.bytes, bytes_needed(end.storage, end.tile, size_of(layout.dtype), name));
    return end;
}

// Both exchanges within the node and the one between nodes have a step each, behind local copies.
Result<std::vector<RankStep>> steps_of(const NodeMove& move, Index rank, const CallersTile& held,
                                       const CallersTile& wanted, const Staged& staged) {
    using enum BufferId;
    const auto own = static_cast<std::size_t>(rank);
    const auto in_source = [&](const BoxTable& table) {
        return places_in(held.tile, held.storage, table.ranks[own].have);
    };
    const auto in_target = [&](const BoxTable& table) {
        return places_in(wanted.tile, wanted.storage, table.ranks[own].want);
    };
    const auto sent = move.way.relays ? staged.relayed : in_source(move.fetch);
    const BufferId sender = move.way.relays ? workspace : source;
    std::vector<RankStep> steps;
    for (auto& step : {step_of(move.keep, rank, {in_source(move.keep), in_target(move.keep)}, source, target),
                       step_of(move.spread, rank, {in_source(move.spread), staged.spread}, source, workspace),
                       step_of(move.fetch, rank, {sent, staged.fetched}, sender, workspace),
                       step_of(move.share, rank, {staged.shared, in_target(move.share)}, workspace, target)}) {
        RESHARD_CHECK(step);
        steps.push_back(*step);
        steps.back().step = steps.size() - 1;
    }
    return steps;
}

Result<RankPlan> lower(NodeMove move, const Backend& backend, const Storages& storages) {
    if (std::ssize(move.keep.ranks) > backend.size())
        return fail(Code::mismatch, fmt::format("the move has {} devices, the backend has {} ranks",
                                                move.keep.ranks.size(), backend.size()));
    const auto ranks = static_cast<std::size_t>(backend.size());
    for (BoxTable* table : {&move.keep, &move.spread, &move.fetch, &move.share}) table->ranks.resize(ranks);
    if (move.way.relays) move.relayed.resize(ranks);
    const Index rank = backend.rank();
    RESHARD_TRY(const auto& held, end_of(move.ends.source, rank, storages.source, "source"));
    RESHARD_TRY(const auto& wanted, end_of(move.ends.target, rank, storages.target, "target"));
    const Staged staged = staged_on(move, static_cast<std::size_t>(rank));
    RankPlan plan;
    RESHARD_ASSIGN(plan.steps, steps_of(move, rank, held, wanted, staged));
    plan.dtype = plan.target_dtype = move.ends.source.dtype;
    plan.source_bytes = held.bytes;
    plan.target_bytes = wanted.bytes;
    plan.workspace_bytes = staged.elements * size_of(plan.dtype);
    return plan;
}

}  // namespace

Result<Executor> Executor::prepare_through_nodes(const Result<NodeMove>& move, Backend& backend,
                                                 const Storages& storages) {
    auto plan = move.and_then([&](const NodeMove& one) { return lower(one, backend, storages); });
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(backend.agree(plan.map([&](const RankPlan&) { return fingerprint(*move); })));
    Executor executor;
    executor.backend_ = &backend;
    executor.arrays_ = {{0}};
    executor.plans_ = {*plan};
    Bucket bucket{{0}, {}, {}};
    RESHARD_CHECK(prepare_bucket(bucket, {std::move(*plan)}, backend, std::nullopt));
    executor.state_ = std::make_shared<RunState>();
    executor.state_->prepared.assign(bucket.prepared.begin(), bucket.prepared.end());
    executor.buckets_.push_back(std::move(bucket));
    return executor;
}

}  // namespace reshard
