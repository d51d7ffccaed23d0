// The front door: refuse bad questions, bring both ends to one shape, one order of devices and one reduction, and
// answer.
#include "reshard/synthesize.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "reshard/planner/normalize_devices.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "synth/answer.hpp"
#include "synth/cast.hpp"
#include "synth/overlap/overlap_steps.hpp"
#include "synth/policy.hpp"
#include "synth/rules/averages.hpp"
#include "synth/rules/views.hpp"

namespace reshard {

std::string_view name(StopReason reason) {
    constexpr std::array<std::string_view, 4> names = {"one_step", "exhausted", "budget", "unsearched"};
    return names[static_cast<std::size_t>(reason)];
}

namespace {

// The user's steps must be typed one after another.
Result<void> validate_first_steps(const Problem& problem, const std::vector<Step>& steps) {
    const Layout* before = &problem.source;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (auto move = type_step(*before, steps[i]); !move)
            return fail(move.error().code, fmt::format("first step {}: {}", i + 1, move.error().message));
        before = &steps[i].layout;
    }
    if (!same_array(*before, problem.target))
        return fail(Code::step,
                    fmt::format("the first steps end at {}; a view must lead back to the shape of the target",
                                format(*before)));
    RESHARD_CHECK(check_enumerable(*before, problem.target));
    return {};
}

bool mixes_reductions(const Problem& problem) {
    return !problem.source.unreduced.empty() && !problem.target.unreduced.empty() &&
           problem.source.reduction != problem.target.reduction;
}

bool mixes_combinations(const Problem& problem) {
    return mixes_reductions(problem) && combine_of(problem.source.reduction) != combine_of(problem.target.reduction);
}

Result<Synthesis> of_one_reduction(const Problem& problem, const Options& options) {
    RESHARD_CHECK(check_enumerable(problem.source, problem.target));
    RESHARD_CHECK(validate_first_steps(problem, options.first_steps));
    return answer(problem, options);
}

bool begins_with(const Plan& plan, const std::vector<Step>& steps) {
    return plan.steps.size() >= steps.size() && std::equal(steps.begin(), steps.end(), plan.steps.begin());
}

Result<Judged<Plan>> judge_as_it_runs(Plan plan, const Options& options) {
    const Execution execution = execution_for(plan, options);
    return judge(std::move(plan), execution, options.limits);
}

// An array that is averaged in part moves as sums do. nullopt if the divisors of the ends do not fit, which happens
// only if both ends have summands.
std::optional<Result<Synthesis>> by_sums(const Problem& problem, const Options& options) {
    if (auto typed = validate_first_steps(problem, options.first_steps); !typed)
        return Result<Synthesis>(tl::unexpected(typed.error()));
    Options of_sums = options;
    for (Step& step : of_sums.first_steps) step.layout = as_sums(std::move(step.layout));
    auto made = of_one_reduction({as_sums(problem.source), as_sums(problem.target)}, of_sums);
    if (!made) return made;
    Plan plan = made->plan();
    if (!divide(plan, problem)) return std::nullopt;
    if (!begins_with(plan, options.first_steps))
        return Result<Synthesis>(
            fail(Code::unsupported, "first steps divide an average as soon as they must, not else"));
    const auto judged = overlaps(made->execution()) ? judge(std::move(plan), made->execution(), options.limits)
                                                    : judge_as_it_runs(std::move(plan), options);
    if (!rejudge(*made, judged)) return Result<Synthesis>(tl::unexpected(judged.error()));
    std::erase_if(made->alternatives, [&](Alternative& one) {
        Plan other = one.plan();
        return !divide(other, problem) || !rejudge(one, judge(std::move(other), one.execution(), one.limits()));
    });
    return made;
}

// pre: one end has no summands.
Result<Synthesis> half(const Problem& problem, const Options& options) {
    return averages_in_part(problem) ? *by_sums(problem, options) : of_one_reduction(problem, options);
}

// Summands of one kind never become summands of another, so the plan passes through the reduced array.
Result<Synthesis> by_halves(const Problem& problem, const Options& options) {
    if (is_off(options, "reduce_first")) return tl::unexpected(no_rule_left(options));
    const Index begin = now(options);
    Layout reduced = problem.target;
    reduced.unreduced.clear();
    Options each = options;
    each.limits = {};
    each.capabilities.steps_overlap = false;  // the whole is cut
    each.explain = false;
    auto made = half({problem.source, reduced}, each);
    if (!made) return made;
    each.first_steps.clear();
    const auto rest = half({reduced, problem.target}, each);
    if (!rest) return rest;
    Plan plan = made->plan();
    plan.target = problem.target;
    plan.steps.insert(plan.steps.end(), rest->plan().steps.begin(), rest->plan().steps.end());
    merge_views(plan);
    if (auto judged = judge_as_it_runs(std::move(plan), options); !rejudge(*made, judged))
        return tl::unexpected(judged.error());
    made->picoseconds = saturating_add(made->picoseconds, rest->picoseconds);
    if (const auto pieces = in_overlapped_pieces(*made, options)) {
        static_cast<Judged<Plan>&>(*made) = *pieces;
        made->picoseconds = run_picoseconds(made->plan(), made->execution(), made->verdict(), options.machine);
    }
    made->states += rest->states;
    made->rule = "reduce_first";
    made->row = halves_row();
    made->optimal = made->verdict().received_bytes_max_device == made->verdict().lower_bound_bytes;
    made->search_complete = made->optimal && options.objective == Objective::bytes && !is_off(options, "search");
    if (!options.explain) return made;
    made->alternatives = {{*made, made->rule, made->picoseconds, {}}};
    made->rules = {{"reduce_first", 1, 1, now(options) - begin}};
    return made;
}

Result<Synthesis> by_sums_or_halves(const Problem& problem, const Options& options) {
    if (averages_in_part(problem) && !mixes_combinations(problem))
        if (auto made = by_sums(problem, options)) return *std::move(made);
    return by_halves(problem, options);
}

Result<Synthesis> in_these_orders(const Problem& problem, const Options& options) {
    if (!averages_in_part(problem) && !mixes_reductions(problem)) return of_one_reduction(problem, options);
    if (!weighs_collectives(options) || is_off(options, "collectives")) return by_sums_or_halves(problem, options);
    // Compares whole plans: plans as sums may not divide, and halves do not overlap.
    Options rest = options;
    rest.disabled_rules.emplace_back("collectives");
    auto made = by_sums_or_halves(problem, rest);
    auto other = by_sums_or_halves(problem, of_collectives(options));
    return other && (!made || other->picoseconds < made->picoseconds) ? other : made;
}

// Collectives cut dimensions evenly. In a view a block-cyclic cut is even: its digits are dimensions.
// nullopt if that is no such question, or has no plan.
std::optional<Synthesis> in_view_of_digits(const Problem& problem, const Options& options) {
    if (options.vocabulary != Vocabulary::collectives || !options.first_steps.empty()) return std::nullopt;
    const auto seen = in_digits(problem);
    if (!seen) return std::nullopt;
    auto made = in_these_orders(*seen, options);
    if (!made) return std::nullopt;
    // A cut in pieces has no blocks, so the plan is not cut into pieces that run one after another.
    const auto rejudged = [&](auto& one) {
        if (!rejudge(one, judge_as_it_runs(between_views(problem, one.plan()), options))) return false;
        one.picoseconds = run_picoseconds(one.plan(), one.execution(), one.verdict(), options.machine);
        return true;
    };
    if (!rejudged(*made)) return std::nullopt;
    std::erase_if(made->alternatives, [&](Alternative& one) { return !rejudged(one); });
    return *std::move(made);
}

}  // namespace

Result<Synthesis> synthesize(const Problem& asked, const Options& options) {
    RESHARD_CHECK(rules_off(options));
    RESHARD_TRY(Problem & problem, to_common_shape(asked));
    if (problem.source.dtype != problem.target.dtype) return with_cast(problem, options);
    const bool listed = !problem.source.mesh.devices.in_order() || !problem.target.mesh.devices.in_order();
    if (listed && options.first_steps.empty())
        std::tie(problem.source, problem.target) = normalized_devices(problem.source, problem.target);
    if (auto made = in_view_of_digits(problem, options)) return *std::move(made);
    return in_these_orders(problem, options);
}

Result<Synthesis> synthesize(const Layout& source, const Layout& target, const Options& options) {
    return synthesize(Problem{source, target}, options);
}

}  // namespace reshard
