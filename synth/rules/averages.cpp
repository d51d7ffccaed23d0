#include "synth/rules/averages.hpp"

#include <numeric>

namespace reshard {

namespace {

bool in_part(const Layout& layout) { return !layout.unreduced.empty() && layout.summed > 1; }

void set_divisor(Layout& layout, Index by) {
    if (!layout.unreduced.empty()) divide_by(layout, by);
}

}  // namespace

bool averages_in_part(const Problem& problem) { return in_part(problem.source) || in_part(problem.target); }

Layout as_sums(Layout layout) {
    divide_by(layout, 1);
    return layout;
}

bool divide(Plan& plan, const Problem& problem) {
    plan.source = problem.source;
    plan.target = problem.target;
    if (problem.source.unreduced.empty()) {  // only summands are made: from the end
        Index by = divisor(problem.target);
        for (std::size_t i = plan.steps.size(); i-- > 0;) {
            set_divisor(plan.steps[i].layout, by);
            if (plan.steps[i].kind == StepKind::zero_fill) by = std::gcd(by, summand_count(layout_before(plan, i)));
        }
        return by == 1;
    }
    Index by = divisor(problem.source);
    for (Step& step : plan.steps) {
        const bool reduces = step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce;
        if (reduces) by = std::gcd(by, summand_count(step.layout));
        set_divisor(step.layout, by);
    }
    return by == divisor(problem.target);
}

}  // namespace reshard
