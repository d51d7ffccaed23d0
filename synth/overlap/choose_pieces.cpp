#include "reshard/overlap/choose_pieces.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/price/run_times.hpp"
#include "synth/overlap/cuts.hpp"

namespace reshard {
namespace {

// The work is asked for between any two places, and ends are sought among all of them.
constexpr Index places_max = 1024;
constexpr Index looked_at_max = Index{1} << 22;

Result<Index> picoseconds_of_work(double seconds) {
    const double picoseconds = seconds * 1e12;
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
    const Index places = std::min(work.places, work.block);
    const Index looked_at = saturating_multiply(saturating_multiply(places, places), std::min(work.pieces_max, places));
    if (places > places_max || looked_at > looked_at_max)
        return fail(Code::usage, fmt::format("{} pieces at most, which may end at {} places; at most {} places, and {} "
                                             "for places * places * pieces, are looked at",
                                             work.pieces_max, work.places, places_max, looked_at_max));
    RESHARD_TRY(const auto& before, picoseconds_of_work(work.seconds_before));
    if (work.makes_source && before > 0)
        return tl::unexpected(Error{Code::usage, "work that makes pieces waits for none of them", "", 0});
    Split split{work.dim, work.block, {work.block}, {}, true};
    RESHARD_CHECK(can_split(plan.plan(), split));
    const Index price = run_picoseconds(plan.plan(), plan.execution(), plan.verdict(), machine);
    // Pieces do the steps, whatever the plan runs as by itself.
    RESHARD_TRY(const auto& verdict, check(plan.plan()));
    std::optional<Error> wrong;
    OverlapTimes times;
    times.run = run_times(plan.plan(), split, verdict, machine, work.steps_overlap);
    times.slowed_percent = machine.slowed_percent;
    times.work_first = work.makes_source;
    times.before = before;
    times.work = [&](Index begin, Index end) {
        const auto picoseconds = picoseconds_of_work(work.seconds(begin, end));
        if (!picoseconds && !wrong) wrong = picoseconds.error();
        return picoseconds ? *picoseconds : 0;
    };
    Cuts cuts = steady_cuts(times, work.block, work.places, work.pieces_max);
    PieceChoice choice;
    choice.serial_picoseconds = saturating_add(price, saturating_add(before, cuts.whole_work));
    if (wrong) return tl::unexpected(*wrong);
    choice.picoseconds = in_one_piece(times, price, cuts.whole_work);
    if (cuts.ends.size() == 1 || cuts.time >= choice.picoseconds) return choice;
    choice.picoseconds = cuts.time;
    split.ends = std::move(cuts.ends);
    if (!std::ranges::is_sorted(cuts.order)) split.order = std::move(cuts.order);
    choice.split = std::move(split);
    return choice;
}

}  // namespace reshard
