// A step on one rank, as boxes and peers. Both ends compute their side alone. They agree because both walk the same
// tiles in the same order.
#include "reshard/planner/schedule.hpp"

#include <algorithm>
#include <cassert>

#include "src/schedule/exchange.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

void scale(Schedule& schedule, Scale factor) {
    if (factor == Scale{} || count(schedule.target_tile) == 0) return;
    schedule.scale = factor;
    for (Box& box : boxes_of(schedule.target_tile)) schedule.scaled.push_back(std::move(box));
}

void receive(Schedule& schedule, Index peer, const std::vector<Box>& boxes) {
    for (const Box& box : boxes) schedule.receives.push_back({peer, box});
}

void send(Schedule& schedule, Index peer, const std::vector<Box>& boxes) {
    if (peer == schedule.rank) return;
    for (const Box& box : boxes) schedule.sends.push_back({peer, box});
}

bool in_one_run(const Tile& tile) {
    return std::ranges::all_of(tile, [](const Side& side) { return side.intervals.size() <= 1; });
}

// Each member sends each other member the part of its tile that the other needs. Reductions are the same: every member
// holds a summand of the others' parts, and the receiver adds up.
void schedule_group(Schedule& schedule, const Layout& before, const Layout& after, const AtomList& group) {
    const std::vector<Index> members = group_of(before, group, schedule.rank);
    for (const Index peer : members) {
        receive(schedule, peer, boxes_of(intersect(tile(before, peer), schedule.target_tile)));
        send(schedule, peer, boxes_of(intersect(schedule.source_tile, tile(after, peer))));
    }
    // Regular collectives do not handle tiles of several intervals.
    if (in_one_run(schedule.source_tile) && in_one_run(schedule.target_tile)) schedule.group = members;
}

void schedule_permute(Schedule& schedule, const Layout& before, const Layout& after, const Network& network) {
    const Routing routing(before, after, schedule.rank, network);
    receive(schedule, routing.partner(after, before), boxes_of(schedule.target_tile));
    send(schedule, routing.partner(before, after), boxes_of(schedule.source_tile));
}

Schedule empty_schedule(const Layout& layout, StepKind kind, Index rank) {
    const Tile none = nothing(layout.dims.size());
    return {kind, rank, none, none, Combine::copy, {}, {}, {}, {}};
}

}  // namespace

Schedule schedule(const Layout& before, const Step& step, Index rank, const Network& network) {
    assert(type_step(before, step));
    const Layout& after = step.layout;
    Schedule made = empty_schedule(after, step.kind, rank);
    if (!position_of(before.mesh, rank) && !position_of(after.mesh, rank)) return made;
    made.source_tile = tile(step.kind == StepKind::view ? after : before, rank);
    made.target_tile = tile(after, rank);
    switch (step.kind) {
        case StepKind::slice:
        case StepKind::view:
        case StepKind::cast:
            receive(made, rank, boxes_of(made.target_tile));
            break;
        case StepKind::zero_fill:
            made.fills = boxes_of(made.target_tile);
            made.identity = combine_of(after.reduction);
            scale(made, {divisor(after) / divisor(before), 1});
            if (value_of(spread_atoms(before, after), *position_of(before.mesh, rank)) == 0)
                receive(made, rank, boxes_of(made.source_tile));
            break;
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
            made.combine = combine_of(before.reduction);
            scale(made, {1, divisor(before) / divisor(after)});
            [[fallthrough]];
        case StepKind::all_gather:
        case StepKind::all_to_all:
            schedule_group(made, before, after, type_step(before, step)->group);
            break;
        case StepKind::permute:
            schedule_permute(made, before, after, network);
            break;
        case StepKind::exchange:
            made.receives = exchange_receives(before, after, rank, network);
            made.sends = exchange_sends(before, after, rank, network);
            break;
    }
    return made;
}

}  // namespace reshard
