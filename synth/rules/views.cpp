#include "synth/rules/views.hpp"

#include "reshard/planner/view.hpp"

namespace reshard {

Plan between_views(const Problem& ends, Plan seen) {
    const bool leads = shape(ends.source) != shape(seen.source);
    const bool returns = shape(ends.target) != shape(seen.target);
    Plan plan{ends.source, ends.target, {}, std::move(seen.network)};
    if (leads) plan.steps.push_back({StepKind::view, std::move(seen.source)});
    std::ranges::move(seen.steps, std::back_inserter(plan.steps));
    if (returns) plan.steps.push_back({StepKind::view, ends.target});
    merge_views(plan);
    return plan;
}

void merge_views(Plan& plan) {
    const auto is_view = [&](std::size_t i) { return plan.steps[i].kind == StepKind::view; };
    for (std::size_t i = 1; i < plan.steps.size();) {
        const Layout& before = layout_before(plan, i - 1);
        const auto first = plan.steps.begin() + static_cast<std::ptrdiff_t>(i) - 1;
        if (!is_view(i - 1) || !is_view(i)) {
            ++i;
        } else if (equivalent(before, plan.steps[i].layout)) {
            plan.steps.erase(first, first + 2);
            i = std::max<std::size_t>(i, 2) - 1;
        } else if (type_valid_step(before, plan.steps[i])) {
            plan.steps.erase(first);
        } else {
            ++i;
        }
    }
}

std::optional<Problem> in_digits(const Problem& problem) {
    if (!has_pieces(problem.source) && !has_pieces(problem.target)) return std::nullopt;
    const auto source = in_digits(problem.source);
    const auto target = in_digits(problem.target);
    if (!source || !target) return std::nullopt;
    auto seen = in_common_view(*source, *target);
    if (!seen || has_pieces(seen->first) || has_pieces(seen->second)) return std::nullopt;
    return Problem{std::move(seen->first), std::move(seen->second)};
}

}  // namespace reshard
