#include "synth/candidates.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/planner/refinement.hpp"
#include "reshard/text.hpp"
#include "src/tables/step_kinds.hpp"
#include "synth/overlap/overlap_steps.hpp"
#include "synth/rules/fuse_steps.hpp"

namespace reshard {

namespace {

// The order of candidates under an objective. Later entries break ties.
using Rank = std::tuple<Index, Index, Index, Index, Index>;

Rank rank_of(const Alternative& candidate, Objective objective) {
    const Index received = candidate.verdict().received_bytes_max_device;
    const Index moves = moving_steps(candidate.plan());
    const Index peak = candidate.verdict().peak_bytes;
    const Index time = candidate.picoseconds;
    const auto steps = static_cast<Index>(candidate.plan().steps.size());
    switch (objective) {
        case Objective::time:
            return {time, moves, steps, peak, received};
        case Objective::bytes:
            return {received, moves, time, steps, peak};
        case Objective::steps:
            break;
    }
    return {moves, received, time, steps, peak};
}

// The user's first steps may hold larger tiles. The judge holds them to the user's limit.
Index peak_allowed(const Problem& problem, const std::vector<Step>& first_steps) {
    Index peak = std::max(tile_bytes(problem.source), tile_bytes(problem.target));
    for (const Step& step : first_steps) peak = std::max(peak, tile_bytes(step.layout));
    return peak;
}

}  // namespace

Index moving_steps(const Plan& plan) {
    return std::ranges::count_if(plan.steps, [](const Step& step) { return !is_local(step.kind); });
}

Execution execution_for(const Plan& plan, const Options& options) {
    return choose_execution(plan, options.capabilities, options.limits.memory,
                            options.first_steps.empty() ? options.vocabulary : Vocabulary::collectives);
}

bool overlaps_levels(const Options& options) {
    return options.capabilities.steps_overlap && options.machine.levels.size() > 1;
}

bool at_bound(const Judged<Plan>& plan) {
    return plan.verdict().received_bytes_max_device == plan.verdict().lower_bound_bytes;
}

bool unbeatable(const Judged<Plan>& best, Objective objective) {
    const Index moves = moving_steps(best.plan());
    switch (objective) {
        case Objective::time:
            // Every plan ends with a copy of the target's tile; slices are views.
            return std::ranges::all_of(best.plan().steps, [](const Step& step) { return is_alias(step.kind); });
        case Objective::bytes:
            return at_bound(best);
        case Objective::steps:
            break;
    }
    return moves == 0 || (moves == 1 && at_bound(best) && best.verdict().lower_bound_bytes > 0);
}

Error no_rule_left(const Options& options) {
    return {Code::infeasible,
            fmt::format("no rule that is left finds a plan; off are {}", fmt::join(options.disabled_rules, ", "))};
}

Candidates::Candidates(const Problem& problem, const Options& options, Index least_peak_bytes)
    : problem_(problem),
      options_(options),
      floor_bytes_(peak_allowed(problem, {})),
      peak_bytes_max_(std::max(least_peak_bytes, peak_allowed(problem, options.first_steps))) {}

bool Candidates::consider(std::string rule, Plan plan) {
    Plan fused = shortcut(plan, options_);
    const bool fewer = moving_steps(fused) < moving_steps(plan);
    const bool kept = judge(rule, std::move(fused));
    if (fewer && overlaps_levels(options_)) judge_in_pieces(std::move(rule), std::move(plan));
    return kept;
}

bool Candidates::judge(std::string rule, Plan plan) {
    ++proposed_;
    plan = completed(std::move(plan));
    Execution execution = execution_for(plan, options_);
    if (std::holds_alternative<AsOneExchange>(execution) && plan.steps.size() > 1) {
        plan = *as_one_exchange(plan);
        execution = execution_for(plan, options_);
    }
    return judge_as(std::move(rule), std::move(plan), execution, true);
}

// Serial steps take longer than fused ones, but in pieces their levels may work at the same time.
void Candidates::judge_in_pieces(std::string rule, Plan plan) {
    plan = completed(std::move(plan));
    if (known(plan) || !std::holds_alternative<AsSteps>(execution_for(plan, options_))) return;
    const auto steps = judged_as(std::move(plan), AsSteps{});
    if (!steps) return;
    if (auto pieces = in_overlapped_pieces(*steps, options_)) {
        ++proposed_;
        note(std::move(rule), *std::move(pieces));
    }
}

void Candidates::show(std::string rule, Plan plan) {
    ++proposed_;
    plan = completed(std::move(plan));
    const Execution execution = choose_execution(plan, {}, options_.limits.memory, Vocabulary::collectives);
    judge_as(std::move(rule), std::move(plan), execution, false);
}

void Candidates::keep(std::string rule, Judged<Plan> judged) {
    ++proposed_;
    const auto same = [&](const Alternative& other) {
        return other.plan() == judged.plan() && other.execution() == judged.execution();
    };
    if (std::ranges::none_of(kept_, same)) note(std::move(rule), std::move(judged));
}

// The plan with the ends in the user's own names, behind the user's first steps.
Plan Candidates::completed(Plan plan) const {
    if (!plan.steps.empty() && equivalent(plan.steps.back().layout, plan.target))
        plan.steps.back().layout = plan.target;
    if (!options_.first_steps.empty()) {
        plan.steps.insert(plan.steps.begin(), options_.first_steps.begin(), options_.first_steps.end());
        plan.source = problem_.source;
    }
    if (plan.network.empty()) plan.network = network_for(plan, options_.machine);
    return plan;
}

// True if an earlier rule's plan is kept, false if it was rejected, nullopt if the plan is new.
std::optional<bool> Candidates::known(const Plan& plan) const {
    const auto same = [&](const Alternative& other) { return other.plan() == plan; };
    if (std::ranges::any_of(kept_, same)) return true;
    if (std::ranges::any_of(rejected_, same)) return false;
    return std::nullopt;
}

bool Candidates::judge_as(std::string rule, Plan plan, const Execution& execution, bool may_overlap) {
    if (const auto kept = known(plan)) return *kept;
    auto judged = judged_as(std::move(plan), execution);
    if (!judged) return false;  // a rule was wrong, or sizes do not divide
    if (auto pieces = may_overlap ? in_overlapped_pieces(*judged, options_) : std::nullopt) judged = std::move(*pieces);
    return note(std::move(rule), *std::move(judged));
}

Result<Judged<Plan>> Candidates::judged_as(Plan plan, const Execution& execution) const {
    return reshard::judge(std::move(plan), execution, {.memory = {.donate = options_.limits.memory.donate}});
}

bool Candidates::note(std::string rule, Judged<Plan> judged) {
    const Index time = run_picoseconds(judged.plan(), judged.execution(), judged.verdict(), options_.machine);
    std::string over = over_limit(judged);
    const bool kept = over.empty();
    (kept ? kept_ : rejected_).push_back({std::move(judged), std::move(rule), time, std::move(over)});
    return kept;
}

// Why a right plan may not be chosen; otherwise empty. Remembers the plan nearest to the user's limit.
std::string Candidates::over_limit(const Judged<Plan>& candidate) {
    const Verdict& verdict = candidate.verdict();
    // The user's first steps may have any kind.
    const auto own = std::span(candidate.plan().steps).subspan(options_.first_steps.size());
    if (!std::ranges::all_of(own, [&](const Step& step) { return allows(options_.vocabulary, step.kind); }))
        return "it exchanges, which is no collective";
    if (verdict.peak_bytes > peak_bytes_max_)
        return fmt::format("peak {} over the floor {}", format_bytes(verdict.peak_bytes),
                           format_bytes(peak_bytes_max_));
    if (!options_.limits.memory.footprint_bytes_max && options_.first_steps.empty()) return {};
    const auto within = reshard::within(candidate, options_.limits);
    if (within) return {};
    if (!limit_error_ || verdict.footprint_bytes < nearest_footprint_) {
        limit_error_ = within.error();
        nearest_footprint_ = verdict.footprint_bytes;
    }
    return within.error().message;
}

std::size_t Candidates::best_place() const {
    if (chosen_) return *chosen_;
    const auto found =
        std::ranges::min_element(kept_, {}, [&](const Alternative& a) { return rank_of(a, options_.objective); });
    return static_cast<std::size_t>(found - kept_.begin());
}

const Alternative* Candidates::best() const { return kept_.empty() ? nullptr : &kept_[best_place()]; }

void Candidates::settle() { chosen_ = best_place(); }

Error Candidates::no_plan() const {
    if (limit_error_) return *limit_error_;
    if (!options_.disabled_rules.empty()) return no_rule_left(options_);
    if (!same_order(problem_.source.mesh, problem_.target.mesh))
        return {Code::infeasible,
                "no sequence of collectives leads from one mesh to the other; the vocabulary 'all' has a plan"};
    std::string why;
    for (const Layout* end : {&problem_.source, &problem_.target})
        if (why.empty()) why = why_uneven(*end);
    if (why.empty() && !commensurable(problem_.source, problem_.target))
        why = "the axes of the two ends have no common refinement";
    if (why.empty()) why = "none was found";
    return {Code::infeasible,
            fmt::format("no sequence of collectives keeps the peak at the floor of {}: {}; the vocabulary 'all' has a "
                        "plan",
                        format_bytes(floor_bytes_), why)};
}

std::vector<Alternative> Candidates::take_all() {
    const auto winner = kept_.begin() + static_cast<std::ptrdiff_t>(best_place());
    std::rotate(kept_.begin(), winner, winner + 1);
    std::stable_sort(kept_.begin() + 1, kept_.end(), [&](const Alternative& a, const Alternative& b) {
        return rank_of(a, options_.objective) < rank_of(b, options_.objective);
    });
    for (std::size_t i = 1; i < kept_.size(); ++i) kept_[i].lost = reason_against(kept_[i], kept_[0]);
    std::ranges::move(rejected_, std::back_inserter(kept_));
    return std::move(kept_);
}

std::string Candidates::reason_against(const Alternative& loser, const Alternative& winner) const {
    const auto bytes = [](const Alternative& a) { return a.verdict().received_bytes_max_device; };
    const auto more_bytes = [&] { return fmt::format("receives {} more", format_bytes(bytes(loser) - bytes(winner))); };
    if (options_.objective == Objective::time && loser.picoseconds > winner.picoseconds)
        return fmt::format("{:.2f}x the time",
                           static_cast<double>(loser.picoseconds) / static_cast<double>(winner.picoseconds));
    if (options_.objective == Objective::bytes && bytes(loser) > bytes(winner)) return more_bytes();
    if (moving_steps(loser.plan()) > moving_steps(winner.plan())) return "more steps";
    if (bytes(loser) > bytes(winner)) return more_bytes();
    if (loser.picoseconds > winner.picoseconds) return "as good, but slower";
    return "as good, found later";
}

}  // namespace reshard
