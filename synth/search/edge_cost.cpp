#include "synth/search/edge_cost.hpp"

#include <algorithm>

#include "src/plan/copy_runs.hpp"

namespace reshard {

namespace {

std::vector<Index> borders_of(const SearchSpace& frame) {
    std::vector<Index> borders;
    for (const Piece& piece : frame.pieces) borders.insert(borders.end(), {piece.stride, piece.stride * piece.size});
    return borders;
}

}  // namespace

EdgeCosts::EdgeCosts(const SearchSpace& frame, Objective objective, const Machine& machine)
    : frame_(frame), objective_(objective), machine_(machine), element_(size_of(frame.like->dtype)) {
    if (objective != Objective::time) return;
    if (machine.levels.size() > 1 || machine.levels[0].pair_bytes_per_second > 0)
        network_.emplace(frame.like->mesh, borders_of(frame), machine);
    last_copy_ =
        transfer_picoseconds(saturating_multiply(tile_of(frame.target), element_), machine.copy_bytes_per_second);
    first_message_ = index_max;
    for (const Level& level : machine.levels) {
        first_message_ = std::min(first_message_, saturating_add(level.start_ps, level.latency_ps));
        fastest_ = std::max(fastest_, level.bytes_per_second);
    }
}

EdgeCost EdgeCosts::of(const State& before, const Edge& hop, bool arrives) const {
    const Index moves = is_local(hop.kind) ? 0 : 1;
    switch (objective_) {
        case Objective::time:
            return {picoseconds(before, hop, arrives), moves};
        case Objective::bytes:
            return {hop.received, moves};
        case Objective::steps:
            break;
    }
    return {moves, hop.received};
}

EdgeCost EdgeCosts::floor_of(const Edge& hop, bool arrives) const {
    if (objective_ != Objective::time) return {0, 0};
    const Index moves = is_local(hop.kind) ? 0 : 1;
    if (hop.kind == StepKind::slice) return {arrives ? last_copy_ : 0, moves};
    Index time = transfer_picoseconds(saturating_multiply(hop.tile, element_), machine_.copy_bytes_per_second);
    // Where sizes do not divide, the typing rule may count more than what goes.
    if (moves > 0 && hop.received > 0 && frame_.even) {
        time = saturating_add(time, first_message_);
        time = saturating_add(time, transfer_picoseconds(saturating_multiply(hop.received, element_), fastest_));
    }
    return {time, moves};
}

EdgeCost EdgeCosts::at_least(Index elements) const {
    const Index moves = elements > 0 ? 1 : 0;
    switch (objective_) {
        case Objective::time:
            if (moves == 0) return {last_copy_, 0};
            return {saturating_add(saturating_add(last_copy_, first_message_),
                                   transfer_picoseconds(saturating_multiply(elements, element_), fastest_)),
                    1};
        case Objective::bytes:
            return {elements, moves};
        case Objective::steps:
            break;
    }
    return {moves, elements};
}

// The digits of a cover as a set, with neighbours that continue each other as one.
AtomList EdgeCosts::atoms_of(std::uint32_t cover) const {
    AtomList atoms;
    atoms.reserve(8);
    for (std::size_t bit = 0; cover >> bit != 0; ++bit) {
        if ((cover >> bit & 1) == 0) continue;
        const Index low = frame_.lows[bit];
        while ((cover >> (bit + 1) & 1) != 0 && frame_.lows[bit + 1] == frame_.highs[bit]) ++bit;
        atoms.insert(atoms.begin(), {frame_.highs[bit] / low, low});
    }
    return atoms;
}

// True when it is what schedules carry, where sizes divide.
bool EdgeCosts::exchange_traffic(const State& before, const Edge& hop, Carried& carried) const {
    std::uint32_t used = 0;
    std::uint32_t wanted = 0;
    LevelTraffic traffic(*network_);
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        used |= frame_.cover_of(before.lists[i]);
        wanted |= frame_.cover_of(hop.state.lists[i]);
        const auto held = frame_.merged(before.lists[i]);
        const auto next = frame_.merged(hop.state.lists[i]);
        traffic.match({held.begin(), held.size()}, {next.begin(), next.size()});
    }
    traffic.replicate(atoms_of(wanted & ~used), atoms_of(used & ~wanted));
    const Index tile = tile_of(before);
    const std::size_t levels = machine_.levels.size();
    const std::span elements(carried.elements.data(), levels);
    const std::span pair(carried.pair.data(), levels);
    if (hop.kind == StepKind::permute)
        traffic.raise_permute(tile, machine_, elements, pair);
    else
        traffic.raise(tile, hop.tile, machine_, elements, pair);
    return traffic.exact();
}

// As the judge has it, by its own count where no closed form holds and devices are few.
EdgeCosts::Carried EdgeCosts::carried(const State& before, const Edge& hop) const {
    const Index load = std::max(hop.received, hop.sent);
    Carried carried;
    carried.elements[0] = load;
    carried.messages[0] = std::max<Index>(1, hop.messages);
    if (!network_) return carried;
    const std::size_t levels = machine_.levels.size();
    const bool moves = hop.kind == StepKind::permute || hop.kind == StepKind::exchange;
    const AtomList group = atoms_of(hop.group);
    bool exact = network_->exact() && frame_.even;
    const bool countable = device_count(frame_.like->mesh) <= counted_devices_max && counted_ < counted_moves_max;
    if (exact || !countable) {
        std::array<Index, levels_max> members{};
        network_->count_members(group, std::span(members.data(), levels));
        if (moves) exact = exchange_traffic(before, hop, carried) && exact;
        const bool sums = hop.kind == StepKind::all_reduce;
        const Index others = std::max<Index>(hop.group_size - 1, 1);
        for (std::size_t i = 0; i < levels; ++i) {
            if (!moves) {
                const Index block = i > 0 && machine_.levels[i].shared ? network_->devices_inside(i) : 1;
                const Index all = sums ? saturating_multiply(2, hop.tile) : load;
                const Index parts = sums ? hop.group_size : others;
                carried.elements[i] = scale_up(saturating_multiply(all, block), members[i], parts);
                carried.pair[i] = members[i] == 0 ? 0 : ceil_divide(all, parts);
            }
            carried.messages[i] = std::max<Index>(1, scale_up(hop.messages, members[i], others));
        }
    }
    if (exact) return carried;
    if (!countable) {
        exact_ = false;
        return carried;
    }
    ++counted_;
    const Layout from = frame_.layout(before);
    const Layout to = frame_.layout(hop.state);
    const Move move{group, hop.group_size, hop.received, hop.sent, hop.messages, false};
    const Network network = network_of(machine_, world_size(from.mesh));
    const Traffic traffic = traffic_of(from, {hop.kind, to}, move, machine_, network);
    std::ranges::copy(traffic.elements, carried.elements.begin());
    std::ranges::copy(traffic.pair, carried.pair.begin());
    std::ranges::copy(traffic.messages, carried.messages.begin());
    return carried;
}

Index EdgeCosts::tile_of(const State& state) const {
    Index tile = 1;
    for (std::size_t i = 0; i < frame_.dims(); ++i)
        tile = saturating_multiply(tile, ceil_divide(frame_.extents[i], frame_.shards(state.lists[i])));
    return tile;
}

Index EdgeCosts::runs(const State& before, const Edge& hop) const {
    if (machine_.copy_run_ps == 0) return 0;
    if (hop.kind == StepKind::slice) {
        const Index runs = sliced_runs(frame_.dims(), [&](std::size_t i) -> SlicedDim {
            const List list = hop.state.lists[i];
            return {ceil_divide(frame_.extents[i], frame_.shards(list)), before.lists[i] != list};
        });
        return saturating_multiply(runs, machine_.copy_run_ps);
    }
    const Index run = run_elements(frame_.dims(), [&](std::size_t i) -> CutDim {
        const Index shards = frame_.shards(before.lists[i]);
        const bool alike = before.lists[i] == hop.state.lists[i];
        return {frame_.extents[i], shards, alike ? shards : frame_.shards(hop.state.lists[i])};
    });
    return runs_picoseconds(hop.tile, run, machine_);
}

// As step_times of the judge.
Index EdgeCosts::picoseconds(const State& before, const Edge& hop, bool arrives) const {
    if (hop.kind == StepKind::slice) return saturating_add(arrives ? last_copy_ : 0, runs(before, hop));
    Index time = transfer_picoseconds(saturating_multiply(hop.tile, element_), machine_.copy_bytes_per_second);
    time = saturating_add(time, runs(before, hop));
    if (is_local(hop.kind) || std::max(hop.received, hop.sent) == 0) return time;
    const Carried over = carried(before, hop);
    for (std::size_t i = 0; i < machine_.levels.size(); ++i) {
        if (over.elements[i] == 0) continue;
        const Level& level = machine_.levels[i];
        const auto seconds = [&](Index count, Index rate) {
            return rate == 0 ? 0 : transfer_picoseconds(saturating_multiply(count, element_), rate);
        };
        const Index messages = saturating_multiply(std::max<Index>(over.messages[i], 1), level.latency_ps);
        time = saturating_add(time, saturating_add(level.start_ps, messages));
        time = saturating_add(time, std::max(seconds(over.elements[i], std::max<Index>(level.bytes_per_second, 1)),
                                             seconds(over.pair[i], level.pair_bytes_per_second)));
    }
    return time;
}

}  // namespace reshard
