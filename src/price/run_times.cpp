#include "src/price/run_times.hpp"

#include <algorithm>
#include <cassert>

#include "src/plan/split_run.hpp"
#include "src/price/carried.hpp"
#include "src/price/copy_runs.hpp"

namespace reshard {

namespace {

// Beyond so many devices nobody asks which are busy in several steps: the busiest of each step count as the same.
constexpr Index devices_told_apart_max = 512;

// The same machine with free bytes: only latencies remain.
Machine without_bytes(Machine machine) {
    for (Level& level : machine.levels) {
        level.bytes_per_second = index_max;
        level.pair_bytes_per_second = 0;
    }
    machine.copy_bytes_per_second = index_max;
    machine.copy_run_ps = 0;
    return machine;
}

bool several_move(const Plan& plan) {
    return std::ranges::count_if(plan.steps, [](const Step& step) { return !is_local(step.kind); }) > 1;
}

// The time that pieces take to copy in shorter runs than the whole tiles would.
Index shorter_runs(const Plan& plan, const Split& split, const Machine& machine) {
    if (machine.copy_run_ps == 0) return 0;
    const auto copies = [&](const Plan& one) {
        Index sum = 0;
        for (std::size_t i = 0; i < one.steps.size(); ++i)
            sum = saturating_add(sum, copies_picoseconds(one, i, machine));
        return sum;
    };
    const Index extent = largest_extent(split);
    const Index pieces = saturating_multiply(copies(plan_of(plan, split, extent)), ceil_divide(split.block, extent));
    return std::max<Index>(pieces - copies(plan), 0);
}

}  // namespace

Index picoseconds_of(const PieceTime& time, Index pieces, Index indices, Index block) {
    return saturating_add(saturating_multiply(pieces, time.once), scale_up(time.whole, indices, block));
}

const PieceTime& longest(const std::vector<PieceTime>& times, Index pieces) {
    return *std::ranges::max_element(times, {},
                                     [&](const PieceTime& time) { return picoseconds_of(time, pieces, 1, 1); });
}

std::vector<Index> busy_levels(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    std::vector<Index> busy = plan_times(plan, verdict, machine).levels;
    const std::vector<Index> latencies = plan_times(plan, verdict, without_bytes(machine)).levels;
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] -= latencies[i];
    // Bytes of steps in two element types are not counted together.
    if (world_size(plan) > devices_told_apart_max || plan.source.dtype != plan.target.dtype) return busy;
    const std::vector<Index> elements = carried_in_all(plan, verdict.moves, machine);
    for (std::size_t i = 0; i < busy.size(); ++i) {
        const Level& level = machine.levels[i];
        if (level.pair_bytes_per_second > 0) continue;  // a pair may be slower than any device is busy
        const Index bytes = saturating_multiply(elements[i], size_of(plan.source.dtype));
        busy[i] = std::min(busy[i], transfer_picoseconds(bytes, level.bytes_per_second));
    }
    return busy;
}

RunTimes overlapped_times(const Plan& plan, const Split& split, const Verdict& verdict, const Machine& machine,
                          const std::vector<Index>& busy) {
    const Times all = plan_times(plan, verdict, machine);
    const Times once = plan_times(plan, verdict, without_bytes(machine));
    const Index runs = shorter_runs(plan, split, machine);
    RunTimes times{{total(once), saturating_add(total(all) - total(once), runs)}, {}};
    times.behind = {{ceil_divide(times.alone.once, 2), ceil_divide(times.alone.whole, 2)}};
    for (std::size_t i = 0; i < busy.size(); ++i) {
        PieceTime level{once.levels[i], busy[i]};
        if (i == 0) {
            level.once = saturating_add(level.once, once.copies);
            level.whole = saturating_add(level.whole, saturating_add(all.copies - once.copies, runs));
        }
        times.behind.push_back(level);
    }
    times.alone.once = saturating_add(times.alone.once, machine.piece_ps);
    for (PieceTime& time : times.behind) time.once = saturating_add(time.once, machine.piece_ps);
    return times;
}

RunTimes run_times(const Plan& plan, const Split& split, const Verdict& verdict, const Machine& machine,
                   bool steps_overlap) {
    if (steps_overlap && several_move(plan) && keeps_blocks(split, plan))
        return overlapped_times(plan, split, verdict, machine, busy_levels(plan, verdict, machine));
    const Index all = plan_picoseconds(plan, verdict, machine);
    const Index once = plan_picoseconds(plan, verdict, without_bytes(machine));
    const PieceTime piece{saturating_add(once, machine.piece_ps), all - once};
    return {piece, {piece}};
}

std::vector<Index> arrivals(const RunTimes& times, const Split& split) {
    const Index pieces = std::ssize(split.ends);
    const PieceTime& behind = longest(times.behind, pieces);
    const Index first = indices_of(split, piece_at(split, 0)).size();
    std::vector<Index> all{picoseconds_of(times.alone, 1, first, split.block)};
    Index later = 0;  // indices behind the first piece
    for (Index place = 1; place < pieces; ++place) {
        later += indices_of(split, piece_at(split, static_cast<std::size_t>(place))).size();
        all.push_back(saturating_add(all.front(), picoseconds_of(behind, place, later, split.block)));
    }
    return all;
}

Index picoseconds_of(const RunTimes& times, const Split& split) {
    const Index pieces = std::ssize(split.ends);
    const Index first = indices_of(split, piece_at(split, 0)).size();
    return saturating_add(picoseconds_of(times.alone, 1, first, split.block),
                          picoseconds_of(longest(times.behind, pieces), pieces - 1, split.block - first, split.block));
}

Index run_picoseconds(const Plan& plan, const Execution& execution, const Verdict& verdict, const Machine& machine) {
    if (std::holds_alternative<AsOneExchange>(execution) &&
        (plan.steps.size() != 1 || plan.steps[0].kind != StepKind::exchange)) {
        const auto exchange = as_one_exchange(plan);
        assert(exchange);
        return plan_picoseconds(*exchange, verdict, machine);
    }
    const Split* split = std::get_if<Split>(&execution);
    if (split == nullptr) return plan_picoseconds(plan, verdict, machine);
    return picoseconds_of(run_times(plan, *split, verdict, machine, overlaps(execution)), *split);
}

}  // namespace reshard
