// A step on one rank, as boxes and peers. Both ends compute their side alone; they agree because both walk the same
// tiles in the same order.
#include "reshard/schedule.hpp"

#include <algorithm>

#include "routing.hpp"

namespace reshard {

namespace {

bool is_empty(const Box& box) { return count(box) == 0; }

void scale(Schedule& schedule, const Layout& layout, Scale factor) {
    if (layout.reduction != Reduction::avg || is_empty(schedule.target_tile)) return;
    schedule.scale = factor;
    schedule.scaled.push_back(schedule.target_tile);
}

void receive(Schedule& schedule, Index peer, const Box& box) {
    if (!is_empty(box)) schedule.receives.push_back({peer, box});
}

void send(Schedule& schedule, Index peer, const Box& box) {
    if (!is_empty(box) && peer != schedule.rank) schedule.sends.push_back({peer, box});
}

// Each member sends to each other what that one wants of its tile. Reductions are no different: every member holds
// what the others want, and the receiver adds up.
void schedule_group(Schedule& schedule, const Layout& before, const Layout& after, const AtomList& group) {
    schedule.group = group_of(group, schedule.rank);
    for (const Index peer : schedule.group) {
        receive(schedule, peer, intersect(tile(before, peer), schedule.target_tile));
        send(schedule, peer, intersect(schedule.source_tile, tile(after, peer)));
    }
}

void schedule_permute(Schedule& schedule, const Layout& before, const Layout& after) {
    const Routing routing(before, after, schedule.rank);
    receive(schedule, routing.partner(after, before), schedule.target_tile);
    send(schedule, routing.partner(before, after), schedule.source_tile);
}

// Receives: every source tile that the target tile touches, from the holder whose turn it is.
void receive_exchange(Schedule& schedule, const Layout& before, const Layout& after) {
    const Routing routing(before, after, schedule.rank);
    const Index wanted = summand(after, schedule.rank);
    for (const TileNumber& number : touched_tiles(before, schedule.target_tile)) {
        const Box piece = intersect(tile_of(before, number), schedule.target_tile);
        if (is_empty(piece)) continue;
        const std::vector<Index> holders = routing.devices_of(before, number, wanted);
        if (std::ranges::binary_search(holders, schedule.rank)) {
            receive(schedule, schedule.rank, piece);
            continue;
        }
        for (const Share& share : routing.shares_of(number, wanted, holders))
            for (const Box& box : boxes_of_range(piece, share.begin, share.end)) receive(schedule, share.holder, box);
    }
}

// Sends: every device that wants some of the source tile and does not hold it, as far as it is this holder's turn.
void send_exchange(Schedule& schedule, const Layout& before, const Layout& after) {
    const Routing routing(before, after, schedule.rank);
    const TileNumber number = tile_number(before, schedule.rank);
    const Index held = summand(before, schedule.rank);
    const std::vector<Index> holders = routing.devices_of(before, number, held);
    const Stripes stripes = routing.stripes_of(number, held, holders);
    for (const Demand& demand : stripes.demands) {
        const auto [begin, end] = stripes.served(demand, schedule.rank);
        if (begin == end) continue;
        const Box piece = intersect(schedule.source_tile, tile(after, demand.device));
        for (const Box& box : boxes_of_range(piece, begin, end)) send(schedule, demand.device, box);
    }
}

Schedule empty_schedule(const Layout& layout, StepKind kind, Index rank) {
    const Box nothing(layout.dims.size(), Interval{0, 0});
    // Rank 0 has no side that could be empty: such a rank holds nothing and is given no transfer.
    return {kind, rank, nothing, nothing, Combine::copy, {}, {}, {}, {}};
}

}  // namespace

Schedule schedule(const Layout& before, const Step& step, Index rank) {
    const Layout& after = step.layout;
    Schedule made = empty_schedule(after, step.kind, rank);
    if (rank >= device_count(before)) return made;
    made.source_tile = tile(before, rank);
    made.target_tile = tile(after, rank);
    const auto move = type_step(before, step);
    switch (step.kind) {
        case StepKind::slice:
            receive(made, rank, made.target_tile);
            break;
        case StepKind::zero_fill:
            if (!is_empty(made.target_tile)) made.fills.push_back(made.target_tile);
            made.identity = combine_of(after.reduction);
            scale(made, after, {move->group_size, 1});
            if (value_of(spread_atoms(before, after), rank) == 0) receive(made, rank, made.source_tile);
            break;
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
            made.combine = combine_of(before.reduction);
            scale(made, before, {1, move->group_size});
            [[fallthrough]];
        case StepKind::all_gather:
        case StepKind::all_to_all:
            schedule_group(made, before, after, move->group);
            break;
        case StepKind::permute:
            schedule_permute(made, before, after);
            break;
        case StepKind::exchange:
            receive_exchange(made, before, after);
            send_exchange(made, before, after);
            break;
    }
    return made;
}

}  // namespace reshard
