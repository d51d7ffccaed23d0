#include "synth/search/edge_cost.hpp"

#include <algorithm>

#include "src/price/copy_runs.hpp"
#include "src/price/level_price.hpp"
#include "src/tables/step_kinds.hpp"

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
        traffic_.emplace(network_.emplace(frame.like->mesh, borders_of(frame), machine));
    const auto parted = [&](const Piece& piece) { return !network_->exact({piece.size, piece.stride}); };
    if (network_ && device_count(frame.like->mesh) <= DeviceTiles::devices_max &&
        std::any_of(frame.pieces.begin(), frame.pieces.end(), parted))
        tiles_.emplace(frame, machine);
    if (machine.levels.size() > 1 && machine.levels.size() <= levels_max)
        needs_.emplace(frame, machine, *network_, tiles_ ? &*tiles_ : nullptr);
    if (needs_ && !needs_->known()) needs_.reset();
    last_copy_ = copies(tile_of(frame.target));
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

// The typing rule may count more than what goes where sizes do not divide and tiles are not looked at, and in exchanges
// between cuts that are mixed.
bool EdgeCosts::sure(const Edge& hop) const {
    if (frame_.mixed && hop.kind == StepKind::exchange) return false;
    return frame_.even || (frame_.exact && hop.kind != StepKind::permute);
}

EdgeCost EdgeCosts::floor_of(const Edge& hop, bool arrives) const {
    if (objective_ != Objective::time) return {0, 0};
    const Index moves = is_local(hop.kind) ? 0 : 1;
    if (is_alias(hop.kind)) return {arrives ? last_copy_ : 0, moves};
    Index time = copies(hop.tile);
    if (moves > 0 && hop.received > 0 && sure(hop)) time = saturating_add(time, message(hop.received));
    return {time, moves};
}

EdgeCost EdgeCosts::floor_by_levels(const State& before, const Edge& hop, bool arrives) const {
    const EdgeCost least = floor_of(hop, arrives);
    if (!needs_ || is_local(hop.kind) || std::max(hop.received, hop.sent) == 0) return least;
    const Index time =
        saturating_add(copies(hop.tile), needs_->picoseconds(before, hop.state, sure(hop) ? hop.received : 0));
    return {std::max(least.first, time), least.second};
}

EdgeCost EdgeCosts::exchange_floor(Index received) const {
    if (objective_ == Objective::bytes) return {received, 1};
    if (objective_ == Objective::steps) return {1, received};
    return {needs_ && received > 0 ? message(received) : 0, 1};
}

EdgeCost EdgeCosts::at_least(const State& state, Index elements) const {
    const EdgeCost least = at_least(elements);
    if (!needs_ || objective_ != Objective::time) return least;
    return {std::max(least.first, saturating_add(last_copy_, needs_->picoseconds(state, frame_.target, elements))),
            least.second};
}

EdgeCost EdgeCosts::at_least(Index elements) const {
    const Index moves = elements > 0 ? 1 : 0;
    switch (objective_) {
        case Objective::time:
            if (moves == 0) return {last_copy_, 0};
            return {saturating_add(last_copy_, message(elements)), 1};
        case Objective::bytes:
            return {elements, moves};
        case Objective::steps:
            break;
    }
    return {moves, elements};
}

Index EdgeCosts::elements_within(EdgeCost paid, EdgeCost below) const {
    if (paid.first >= below.first) return 0;
    switch (objective_) {
        case Objective::time:
            break;
        case Objective::bytes:
            return below.first - paid.first;
        case Objective::steps:
            if (below.first - paid.first > 1) return index_max;
            return std::max<Index>(below.second - paid.second, 0);
    }
    // One part in a thousand more than fits, against rounding.
    const double seconds = static_cast<double>(std::max<Index>(below.first - paid.first - first_message_, 0)) / 1e12;
    const double elements = seconds * static_cast<double>(fastest_) / static_cast<double>(element_) * 1.001 + 1;
    return elements < 1e18 ? static_cast<Index>(elements) : index_max;
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
bool EdgeCosts::exchange_traffic(const State& before, const Edge& hop, const LevelSpans& spans) const {
    std::uint32_t used = 0;
    std::uint32_t wanted = 0;
    LevelTraffic& traffic = *traffic_;
    traffic.clear();
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        used |= frame_.cover_of(before.lists[i]);
        wanted |= frame_.cover_of(hop.state.lists[i]);
        const auto held = frame_.merged(before.lists[i]);
        const auto next = frame_.merged(hop.state.lists[i]);
        traffic.match({held.begin(), held.size()}, {next.begin(), next.size()});
    }
    traffic.replicate(atoms_of(wanted & ~used), atoms_of(used & ~wanted));
    const Index tile = tile_of(before);
    if (hop.kind == StepKind::permute)
        traffic.raise_permute(tile, machine_, spans.elements, spans.pair);
    else
        traffic.raise(tile, hop.tile, machine_, spans.elements, spans.pair);
    return traffic.exact();
}

const LevelMembers& EdgeCosts::members_of(std::uint32_t group) const {
    const auto known = members_.find(group);
    return known != members_.end() ? known->second
                                   : members_.emplace(group, network_->members(atoms_of(group))).first->second;
}

// As the judge has it, by its own count if neither a closed form holds nor tiles are looked at, and devices are few.
EdgeCosts::Carried EdgeCosts::carried(const State& before, const Edge& hop) const {
    const Index load = std::max(hop.received, hop.sent);
    Carried carried;
    carried.elements[0] = load;
    carried.messages[0] = std::max<Index>(1, hop.messages);
    if (!network_) return carried;
    const std::size_t levels = machine_.levels.size();
    const auto of = [&](std::array<Index, levels_max>& numbers) { return std::span(numbers.data(), levels); };
    const LevelSpans spans{of(carried.elements), of(carried.pair), of(carried.messages)};
    const bool moves = crosses_groups(hop.kind);
    if (counts_devices() && (moves || !frame_.even)) {
        tiles_->between(before, hop.state);
        if (!moves)
            tiles_->collective(hop.kind, atoms_of(hop.group), spans);
        else if (hop.kind == StepKind::permute)
            tiles_->permute(spans);
        else
            tiles_->exchange(spans);
        return carried;
    }
    bool exact = frame_.even && (moves ? network_->exact() : network_->counts_members());
    const bool countable = device_count(frame_.like->mesh) <= counted_devices_max &&
                           counted_ < (frame_.limited ? counted_moves_in_views_max : counted_moves_max);
    if (exact || !countable) {
        const LevelMembers& members = members_of(hop.group);
        const bool sums = hop.kind == StepKind::all_reduce;
        if (moves)
            exact = exchange_traffic(before, hop, spans) && exact;
        else
            spread_load(members, machine_, hop.group_size, hop.kind, sums ? hop.tile : load, spans);
        spread_messages(members, hop.group_size, hop.messages, spans);
    }
    if (exact) return carried;
    if (!countable) {
        carried.exact = exact_ = false;
        return carried;
    }
    ++counted_;
    const Layout from = frame_.layout(before);
    const Layout to = frame_.layout(hop.state);
    const Move move{atoms_of(hop.group), hop.group_size, hop.received, hop.sent, hop.messages, false};
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
    if (is_alias(hop.kind)) {
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
    if (is_alias(hop.kind)) return saturating_add(arrives ? last_copy_ : 0, runs(before, hop));
    Index time = copies(hop.tile);
    time = saturating_add(time, runs(before, hop));
    if (is_local(hop.kind) || std::max(hop.received, hop.sent) == 0) return time;
    const Carried over = carried(before, hop);
    for (std::size_t i = 0; i < machine_.levels.size(); ++i)
        time = saturating_add(
            time, level_picoseconds(machine_.levels[i], over.elements[i], over.pair[i], over.messages[i], element_));
    // An estimate may be less than what the levels carry at least.
    return over.exact ? time : std::max(time, floor_by_levels(before, hop, arrives).first);
}

}  // namespace reshard
