#include "reshard/planner/cost.hpp"

#include <algorithm>
#include <cassert>

#include "reshard/planner/refinement.hpp"
#include "src/plan/buffer_assignment.hpp"
#include "src/plan/stripes.hpp"
#include "src/price/carried.hpp"
#include "src/price/carried_by_blocks.hpp"
#include "src/price/copy_runs.hpp"
#include "src/price/level_price.hpp"
#include "src/price/level_traffic.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

Index transfer_picoseconds(Index bytes, Index bytes_per_second) {
    constexpr Index picoseconds_per_second = 1'000'000'000'000;
    bytes_per_second = std::max<Index>(bytes_per_second, 1);
    if (picoseconds_per_second % bytes_per_second == 0)
        return saturating_multiply(bytes, picoseconds_per_second / bytes_per_second);
    return scale_up(bytes, picoseconds_per_second, bytes_per_second);
}

namespace {

/// Beyond so many devices transfers are not looked at one by one.
constexpr Index counted_devices_max = 4096;
/// Up to this many devices the two ends of a permute are compared.
constexpr Index paired_devices_max = Index{1} << 22;

bool has_pair_rate(const Machine& machine) {
    return std::ranges::any_of(machine.levels, [](const Level& level) { return level.pair_bytes_per_second > 0; });
}

// The blocks of a machine in the digits of two layouts in one order of devices.
NetworkDigits digits_of(const Layout& before, const Layout& after, const Machine& machine) {
    std::vector<Index> borders;
    append_borders(before, borders);
    append_borders(after, borders);
    return {before.mesh, std::move(borders), machine};
}

// The blocks that do not hold all of so many devices.
Network within(Network network, Index devices) {
    std::erase_if(network, [&](Index block) { return block >= devices; });
    return network;
}

// In closed form, where sizes divide; nullopt if none holds.
std::optional<Traffic> by_digits(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    const Layout& after = step.layout;
    const NetworkDigits network = digits_of(before, after, machine);
    const bool moves = crosses_groups(step.kind);
    if (!divides(before) || !divides(after) || !(moves ? network.exact() : network.counts_members()))
        return std::nullopt;
    const std::size_t levels = machine.levels.size();
    Traffic made{std::vector<Index>(levels), std::vector<Index>(levels), std::vector<Index>(levels)};
    const LevelSpans spans{made.elements, made.pair, made.messages};
    const LevelMembers members = network.members(move.group);
    if (moves) {
        LevelTraffic traffic(network);
        for (std::size_t i = 0; i < before.dims.size(); ++i) traffic.match(before.dims[i].atoms, after.dims[i].atoms);
        traffic.match(before.unreduced, after.unreduced);
        const AtomList holders = common_digits(complement(used_atoms(before), device_count(before)), used_atoms(after));
        const AtomList wanters = common_digits(complement(used_atoms(after), device_count(after)), used_atoms(before));
        traffic.replicate(holders, wanters);
        if (step.kind == StepKind::permute)
            traffic.raise_permute(tile_elements(before), machine, made.elements, made.pair);
        else
            traffic.raise(tile_elements(before), tile_elements(after), machine, made.elements, made.pair);
        if (!traffic.exact()) return std::nullopt;
    } else {
        const bool sums = step.kind == StepKind::all_reduce;
        const Index load = sums ? tile_elements(before) : std::max(move.received, move.sent);
        spread_load(members, machine, move.group_size, step.kind, load, spans);
    }
    spread_messages(members, move.group_size, move.messages, spans);
    return made;
}

// All at once on every level: no less.
Traffic at_most(const Layout& before, const Move& move, const Machine& machine) {
    const Index load = std::max(move.received, move.sent);
    Traffic traffic;
    for (std::size_t i = 0; i < machine.levels.size(); ++i) {
        const Index block = std::min(sharing_block(machine, i), device_count(before));
        traffic.elements.push_back(saturating_multiply(load, block));
        traffic.pair.push_back(load);
        traffic.messages.push_back(move.messages);
    }
    return traffic;
}

}  // namespace

bool depends_on_network(const Layout& before, const Step& step, const Network& network) {
    const Index devices = device_count(before);
    const AtomList replicas = complement(used_atoms(before), devices);
    if (step.kind == StepKind::permute) return !replicas.empty();
    if (step.kind != StepKind::exchange) return false;
    return !common_digits(replicas, complement(team_atoms(before, step.layout, network), devices)).empty();
}

Network network_for(const Plan& plan, const Machine& machine) {
    Network network = network_of(machine, world_size(plan));
    for (std::size_t i = 0; i < plan.steps.size() && !network.empty(); ++i) {
        const Layout& before = layout_before(plan, i);
        if (!type_step(before, plan.steps[i])) return {};
        if (depends_on_network(before, plan.steps[i], network)) return network;
    }
    return {};
}

Traffic traffic_of(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                   const Network& network) {
    const Index load = std::max(move.received, move.sent);
    const std::size_t levels = machine.levels.size();
    if (load == 0) return {std::vector<Index>(levels), std::vector<Index>(levels), std::vector<Index>(levels)};
    if (levels == 1 && !has_pair_rate(machine)) return {{load}, {load}, {move.messages}};
    const Index devices = std::max(device_count(before), device_count(step.layout));
    const bool one_order = same_order(before.mesh, step.layout.mesh);
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    const Network own = network_of(machine, world);
    const bool chosen = depends_on_network(before, step, own);
    const bool nearest = !chosen || within(network, world) == own;
    if (one_order && nearest)
        if (auto traffic = by_digits(before, step, move, machine)) return *std::move(traffic);
    const bool counted = devices <= counted_devices_max;
    // By blocks messages to replicas are no less; of few devices they are counted.
    if (nearest && (!counted || (!chosen && !has_pair_rate(machine))))
        if (auto traffic = carried_by_blocks(before, step, move, machine)) return *std::move(traffic);
    // Partners of replicas are looked for tile by tile, which takes no longer than there are devices.
    if (counted || (step.kind == StepKind::permute && devices <= paired_devices_max))
        return carried(before, step, move, machine, network);
    return at_most(before, move, machine);
}

std::vector<Index> level_loads(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    return traffic_of(before, step, move, machine, network_of(machine, world)).elements;
}

Index copied_run(const Layout& before, const Layout& after) {
    const std::size_t rank = std::min(before.dims.size(), after.dims.size());
    return run_elements(rank, [&](std::size_t i) -> CutDim {
        const Dim& from = before.dims[i];
        const Dim& to = after.dims[i];
        const Index shards = shard_count(from);
        if (by_ceil_div(from) && by_ceil_div(to)) return {from.extent, shards, shard_count(to)};
        if (same_cut(from, to)) return {tile_extent(to), 1, 1};
        const auto parts = [](const Dim& dim) {
            return dim.pieces.empty() ? shard_count(dim) : static_cast<Index>(dim.pieces.size());
        };
        // As many pieces need not be the same ones.
        const Index all = parts(from) == parts(to) ? parts(from) + 1 : parts(to);
        return {from.extent, parts(from), all};
    });
}

Index total(const Times& times) {
    Index sum = times.copies;
    for (const Index level : times.levels) sum = saturating_add(sum, level);
    return sum;
}

namespace {

Index runs_of_slice(const Layout& before, const Layout& after) {
    return sliced_runs(std::min(before.dims.size(), after.dims.size()), [&](std::size_t i) -> SlicedDim {
        return {tile_extent(after.dims[i]), shard_count(before.dims[i]) != shard_count(after.dims[i])};
    });
}

}  // namespace

Index copies_picoseconds(const Layout& before, const Step& step, const Machine& machine) {
    if (step.kind == StepKind::view) return 0;
    if (is_alias(step.kind)) return saturating_multiply(runs_of_slice(before, step.layout), machine.copy_run_ps);
    const Index runs = machine.copy_run_ps > 0
                           ? runs_picoseconds(tile_elements(step.layout), copied_run(before, step.layout), machine)
                           : 0;
    // A copy reads and writes the same bytes. A cast does not: half of both count.
    const Index bytes = step.kind == StepKind::cast ? saturating_add(tile_bytes(before), tile_bytes(step.layout)) / 2
                                                    : tile_bytes(step.layout);
    return saturating_add(runs, transfer_picoseconds(bytes, machine.copy_bytes_per_second));
}

Index copies_picoseconds(const Plan& plan, std::size_t step, const Machine& machine) {
    if (is_part_of_copy(plan, step)) return 0;
    return copies_picoseconds(layout_before(plan, step), plan.steps[step], machine);
}

namespace {

Times times_of(const Layout& before, const Step& step, const Move& move, const Machine& machine,
               const Network& network) {
    Times times{std::vector<Index>(machine.levels.size()), copies_picoseconds(before, step, machine)};
    if (is_alias(step.kind)) return times;
    const Index element = size_of(before.dtype);
    const Traffic traffic = traffic_of(before, step, move, machine, network);
    for (std::size_t i = 0; i < times.levels.size(); ++i) {
        times.levels[i] =
            level_picoseconds(machine.levels[i], traffic.elements[i], traffic.pair[i], traffic.messages[i], element);
    }
    return times;
}

}  // namespace

Times step_times(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    return times_of(before, step, move, machine, network_of(machine, world));
}

Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    return total(step_times(before, step, move, machine));
}

Times plan_times(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    Times sum{std::vector<Index>(machine.levels.size()), 0};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        if (is_part_of_copy(plan, i)) continue;
        const Times times = times_of(layout_before(plan, i), plan.steps[i], verdict.moves[i], machine, plan.network);
        sum.copies = saturating_add(sum.copies, times.copies);
        for (std::size_t level = 0; level < sum.levels.size(); ++level)
            sum.levels[level] = saturating_add(sum.levels[level], times.levels[level]);
    }
    // If no step writes, the tile is still copied from the source's memory to the target's.
    if (!writes(plan))
        sum.copies =
            saturating_add(sum.copies, transfer_picoseconds(tile_bytes(plan.target), machine.copy_bytes_per_second));
    return sum;
}

Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    assert(verdict.moves.size() == plan.steps.size());
    return total(plan_times(plan, verdict, machine));
}

}  // namespace reshard
