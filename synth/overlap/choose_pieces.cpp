#include "reshard/overlap/choose_pieces.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/try.hpp"
#include "synth/overlap/cuts.hpp"

namespace reshard {
namespace {

// What is left of a price where bytes cost nothing: latencies.
Machine without_bytes(Machine machine) {
    for (Level& level : machine.levels) {
        level.bytes_per_second = index_max;
        level.pair_bytes_per_second = 0;
    }
    machine.copy_bytes_per_second = index_max;
    machine.copy_run_ps = 0;
    return machine;
}

Result<Index> picoseconds_of(const PieceWork& work, Index begin, Index end) {
    const double picoseconds = work.seconds(begin, end) * 1e12;
    if (!(picoseconds >= 0))
        return tl::unexpected(Error{Code::usage, "work takes no time that is a number from 0 on", "", 0});
    return picoseconds >= 9e18 ? index_max : static_cast<Index>(std::llround(picoseconds));
}

}  // namespace

Result<PieceChoice> choose_pieces(const Judged<Plan>& plan, const Machine& machine, const PieceWork& work) {
    if (!work.seconds) {
        return tl::unexpected(Error{Code::usage, "there is no function that says how long work takes", "", 0});
    }
    if (work.pieces_max < 1 || work.places < 1 || work.block < 1) {
        return tl::unexpected(Error{Code::usage, "a block has at least one index, one place and one piece", "", 0});
    }
    Split split{work.dim, work.block, {work.block}, {}, true};
    RESHARD_CHECK(can_split(plan.plan(), split));
    const Index price = plan_picoseconds(plan.plan(), plan.verdict(), machine);
    const Index latency = plan_picoseconds(plan.plan(), plan.verdict(), without_bytes(machine));
    std::optional<Error> wrong;
    OverlapTimes times;
    times.piece = saturating_add(latency, machine.piece_ps);
    times.whole = price - latency;
    times.slowed_percent = machine.slowed_percent;
    times.work_first = work.makes_source;
    times.work = [&](Index begin, Index end) {
        const auto picoseconds = picoseconds_of(work, begin, end);
        if (!picoseconds && !wrong) wrong = picoseconds.error();
        return picoseconds ? *picoseconds : 0;
    };
    Cuts cuts = best_cuts(times, work.block, work.places, work.pieces_max);
    PieceChoice choice;
    choice.serial_picoseconds = saturating_add(price, cuts.whole_work);
    if (wrong) return tl::unexpected(*wrong);
    choice.picoseconds = choice.serial_picoseconds;
    if (cuts.ends.size() == 1 || cuts.time >= choice.serial_picoseconds) return choice;
    choice.picoseconds = cuts.time;
    split.ends = std::move(cuts.ends);
    if (!std::ranges::is_sorted(cuts.order)) split.order = std::move(cuts.order);
    choice.split = std::move(split);
    return choice;
}

}  // namespace reshard
