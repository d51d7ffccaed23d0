#include "synth/overlap/overlap_steps.hpp"

#include <algorithm>
#include <array>

#include "src/plan/split_run.hpp"
#include "src/price/run_times.hpp"

namespace reshard {

namespace {

constexpr std::array<Index, 9> piece_counts = {2, 3, 4, 6, 8, 12, 16, 24, 32};
// Pieces must win 1/20 of the price, since a smaller predicted win may be a loss.
constexpr Index won_at_least = 20;
// Fewer pieces are preferred within 1/50 of the best time, since each must be prepared.
constexpr Index as_good_as_best = 50;

struct Choice {
    Judged<Plan> plan;
    Index picoseconds = 0;
};

std::vector<Choice> choices(const Judged<Plan>& plan, const Blocks& blocks, const Options& options) {
    const std::vector<Index> busy = busy_levels(plan.plan(), plan.verdict(), options.machine);
    std::vector<Choice> all;
    for (const Index count : piece_counts) {
        if (count > blocks.block) break;
        const Split split = even_pieces(blocks.dim, blocks.block, count);
        const auto judged = judge(plan.plan(), split, plan.limits());
        if (!judged || !within(*judged, options.limits)) continue;
        const RunTimes times = overlapped_times(plan.plan(), split, judged->verdict(), options.machine, busy);
        all.push_back({*judged, picoseconds_of(times, split)});
    }
    return all;
}

}  // namespace

std::optional<Judged<Plan>> in_overlapped_pieces(const Judged<Plan>& plan, const Options& options) {
    const std::vector<Step>& steps = plan.plan().steps;
    const auto moves = [](const Step& step) { return !is_local(step.kind); };
    if (!options.capabilities.steps_overlap || !std::holds_alternative<AsSteps>(plan.execution()) ||
        std::ranges::count_if(steps, moves) < 2)
        return std::nullopt;
    const auto blocks = common_blocks(plan.plan(), piece_counts.back());
    if (!blocks) return std::nullopt;
    const Index serial = run_picoseconds(plan.plan(), plan.execution(), plan.verdict(), options.machine);
    const std::vector<Choice> all = choices(plan, *blocks, options);
    const auto best = std::ranges::min_element(all, {}, &Choice::picoseconds);
    if (best == all.end() || best->picoseconds > serial - serial / won_at_least) return std::nullopt;
    const Index enough = saturating_add(best->picoseconds, best->picoseconds / as_good_as_best);
    return std::ranges::find_if(all, [&](const Choice& one) { return one.picoseconds <= enough; })->plan;
}

}  // namespace reshard
