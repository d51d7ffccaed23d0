#include "reshard/cost.hpp"

#include <algorithm>

namespace reshard {

namespace {

constexpr Index picoseconds_per_second = 1'000'000'000'000;

Index transfer_picoseconds(Index bytes, Index bytes_per_second) {
    return scale_up(bytes, picoseconds_per_second, std::max<Index>(bytes_per_second, 1));
}

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

}  // namespace

Machine laptop() {
    // Eight ranks on two cores moving 256 MiB by point to point: 5 GB/s in all; a message through shared memory takes
    // about 1 us; plain copies run at 10 GB/s a core (bench/README.md).
    return {"laptop", {{"node", index_max, 1'000'000, 2'000'000'000}}, 10'000'000'000};
}

Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    const Index element = size_of(before.dtype);
    if (step.kind == StepKind::slice) return 0;  // a view; a last slice is copied, which the copy below would charge
    const Index written = transfer_picoseconds(tile_bytes(step.layout), machine.copy_bytes_per_second);
    const Index load = saturating_multiply(std::max(move.received, move.sent), element);
    Index time = written;
    Index inside = 1;  // members of the group reached through inner levels
    for (const Level& level : machine.levels) {
        const bool regular = !move.group.empty();
        const Index within =
            regular ? members_within(move.group, level.devices) : std::min(move.group_size, level.devices);
        // The share of the load that crosses this level and no higher one.
        const Index others = std::max<Index>(move.group_size - 1, 1);
        const Index here = std::max<Index>(within - inside, 0);
        if (here > 0 && load > 0) {
            const Index messages = std::max<Index>(1, scale_up(move.messages, here, others));
            time = saturating_add(time, saturating_multiply(messages, level.latency_ps));
            time = saturating_add(time, transfer_picoseconds(scale_up(load, here, others), level.bytes_per_second));
        }
        inside = std::max(inside, within);
    }
    return time;
}

Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    Index time = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        time = saturating_add(time, step_picoseconds(layout_before(plan, i), plan.steps[i], verdict.moves[i], machine));
    // Where no step writes, the tile is still copied from the source's memory to the target's.
    const bool copied = plan.steps.empty() || plan.steps.back().kind == StepKind::slice;
    if (copied)
        time = saturating_add(time, transfer_picoseconds(tile_bytes(plan.target), machine.copy_bytes_per_second));
    return time;
}

}  // namespace reshard
