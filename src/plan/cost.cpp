#include "reshard/cost.hpp"

#include <algorithm>
#include <cassert>

namespace reshard {

Index transfer_picoseconds(Index bytes, Index bytes_per_second) {
    constexpr Index picoseconds_per_second = 1'000'000'000'000;
    bytes_per_second = std::max<Index>(bytes_per_second, 1);
    if (picoseconds_per_second % bytes_per_second == 0)
        return saturating_multiply(bytes, picoseconds_per_second / bytes_per_second);
    return scale_up(bytes, picoseconds_per_second, bytes_per_second);
}

namespace {

// How many members of a group sit under one switch of `devices` devices: the digits below its border.
Index members_within(const AtomList& group, Index devices) {
    Index members = 1;
    for (const Atom& atom : group) {
        if (atom.stride >= devices) continue;
        // An atom may cross the border; its lower digits are inside.
        members *= std::min(atom.size, ceil_divide(devices, atom.stride));
    }
    return members;
}

// How many of the group's members each level reaches that no inner one does; the outermost reaches the rest.
std::vector<Index> members_per_level(const Move& move, const Machine& machine) {
    std::vector<Index> members;
    Index inside = 1;
    for (const Level& level : machine.levels) {
        const bool outermost = &level == &machine.levels.back();
        const Index within = outermost ? move.group_size : members_within(move.group, level.devices);
        members.push_back(std::max<Index>(within - inside, 0));
        inside = std::max(inside, within);
    }
    return members;
}

}  // namespace

std::vector<Index> level_loads(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    std::vector<Index> members = members_per_level(move, machine);
    const Index others = std::max<Index>(move.group_size - 1, 1);
    const Index load = std::max(move.received, move.sent);
    if (step.kind == StepKind::exchange && machine.levels.size() > 1 && load > 0) {
        const Layout& after = step.layout;
        std::ranges::fill(members, 0);
        const auto stripes = [](const Layout& far, const Layout& near) {
            return common_digits(complement(used_atoms(far), device_count(far)), used_atoms(near));
        };
        const AtomList striped = stripes(before, after);
        const auto raise = [&](const Layout& far, const Layout& near, LevelTraffic travel, const AtomList& atoms) {
            for (std::size_t i = 0; i < before.dims.size(); ++i) travel.match(far.dims[i].atoms, near.dims[i].atoms);
            travel.stripe(atoms);
            if (before.unreduced != after.unreduced) travel.scatter(far.unreduced);
            travel.raise(tile_elements(after), machine, members);
        };
        raise(before, after, LevelTraffic(LevelTraffic::End::receiver), striped);
        // Replicas share the work, so that their senders are no busier than the receivers.
        if (striped.empty()) raise(after, before, LevelTraffic(LevelTraffic::End::sender), stripes(after, before));
        return members;
    }
    if (step.kind == StepKind::permute) {
        // One tile from one peer, and some device's peer is as far as any.
        bool farthest = true;
        for (auto level = members.rbegin(); level != members.rend(); ++level) {
            const bool reached = *level > 0;
            *level = reached && farthest ? load : 0;
            farthest = farthest && !reached;
        }
        return members;
    }
    for (Index& level : members) level = level == 0 ? 0 : scale_up(load, level, others);
    return members;
}

Index total(const Times& times) {
    Index sum = times.copies;
    for (const Index level : times.levels) sum = saturating_add(sum, level);
    return sum;
}

Times step_times(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    Times times{std::vector<Index>(machine.levels.size()), 0};
    if (step.kind == StepKind::slice) return times;  // a view; plan_times charges the copy of a last one
    const Index element = size_of(before.dtype);
    times.copies = transfer_picoseconds(tile_bytes(step.layout), machine.copy_bytes_per_second);
    const std::vector<Index> members = members_per_level(move, machine);
    const std::vector<Index> loads = level_loads(before, step, move, machine);
    const Index others = std::max<Index>(move.group_size - 1, 1);
    for (std::size_t i = 0; i < loads.size(); ++i) {
        if (loads[i] == 0) continue;
        const Level& level = machine.levels[i];
        const Index messages = std::max<Index>(1, scale_up(move.messages, members[i], others));
        const Index sharers = level.shared && i > 0 ? machine.levels[i - 1].devices : 1;
        const Index bytes = saturating_multiply(saturating_multiply(loads[i], element), sharers);
        for (const Index part : {level.start_ps, saturating_multiply(messages, level.latency_ps),
                                 transfer_picoseconds(bytes, level.bytes_per_second)})
            times.levels[i] = saturating_add(times.levels[i], part);
    }
    return times;
}

Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    return total(step_times(before, step, move, machine));
}

Times plan_times(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    Times sum{std::vector<Index>(machine.levels.size()), 0};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Times times = step_times(layout_before(plan, i), plan.steps[i], verdict.moves[i], machine);
        sum.copies = saturating_add(sum.copies, times.copies);
        for (std::size_t level = 0; level < sum.levels.size(); ++level)
            sum.levels[level] = saturating_add(sum.levels[level], times.levels[level]);
    }
    // Where no step writes, the tile is still copied from the source's memory to the target's.
    const bool copied = plan.steps.empty() || plan.steps.back().kind == StepKind::slice;
    if (copied)
        sum.copies =
            saturating_add(sum.copies, transfer_picoseconds(tile_bytes(plan.target), machine.copy_bytes_per_second));
    return sum;
}

Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    assert(verdict.moves.size() == plan.steps.size());
    return total(plan_times(plan, verdict, machine));
}

}  // namespace reshard
