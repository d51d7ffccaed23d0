// The front door: propose candidates, judge each, keep the cheapest. The searchers may be wrong; the judge is not.
#include "reshard/synthesize.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "synth/averages.hpp"
#include "synth/between.hpp"
#include "synth/choice.hpp"
#include "synth/fetch_once.hpp"
#include "synth/search.hpp"
#include "synth/shortcut.hpp"
#include "synth/three_stage.hpp"

namespace reshard {

std::string_view name(Objective objective) {
    constexpr std::array<std::string_view, 3> names = {"time", "bytes", "steps"};
    return names[static_cast<std::size_t>(objective)];
}

std::string_view name(Vocabulary vocabulary) { return vocabulary == Vocabulary::all ? "all" : "collectives"; }

std::string_view name(StopReason reason) {
    constexpr std::array<std::string_view, 4> names = {"one_step", "exhausted", "budget", "unsearched"};
    return names[static_cast<std::size_t>(reason)];
}

Result<Objective> parse_objective(std::string_view text) {
    for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps})
        if (text == name(objective)) return objective;
    return fail(Code::syntax, fmt::format("'{}' is not an objective: time, bytes or steps", text.substr(0, 40)));
}

Result<Vocabulary> parse_vocabulary(std::string_view text) {
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
        if (text == name(vocabulary)) return vocabulary;
    return fail(Code::syntax, fmt::format("'{}' is not a vocabulary: all or collectives", text.substr(0, 40)));
}

namespace {

class Synthesizer {
public:
    /// `problem` is what is left behind the user's first steps, `choice` that for the whole.
    Synthesizer(const Problem& problem, const Options& options, Choice& choice)
        : problem_(problem),
          options_(options),
          choice_(choice),
          tile_max_(std::max(tile_elements(problem.source), tile_elements(problem.target))) {}

    void propose() {
        if (same_tiles(problem_.source, problem_.target)) {
            consider("identity", {problem_.source, problem_.target, {}});
            return;
        }
        const std::size_t levels = options_.machine.levels.size();
        const bool by_level = options_.objective == Objective::time && levels > 1;
        const bool digits = searchable(problem_);
        const auto frame = digits && levels <= levels_max ? frame_of(problem_, by_level) : std::optional<Frame>();
        const bool searched = frame && search_in(*frame);
        if (!searched || options_.explain) {
            consider_steps();
            if (!digits)
                construct_between();
            else if (!done() || options_.explain)
                construct();
        }
        // As it is: fused, it would not be naive any more.
        if (!options_.explain) return;
        if (auto naive = gather_then_slice(problem_)) choice_.judge("gather_then_slice", std::move(*naive));
    }

    void state(Synthesis& made) const {
        made.search_complete = complete_;
        made.stop_reason = stop_;
        made.states = states_;
    }

private:
    bool consider(std::string rule, Plan plan) { return choice_.consider(std::move(rule), std::move(plan)); }

    void construct_between() {
        for (Proposal& proposal : between(problem_, options_))
            consider(std::move(proposal.rule), std::move(proposal.plan));
    }

    void construct() {
        const auto three = [&](std::string rule, Index inside) {
            consider(std::move(rule), three_stage(problem_, options_.vocabulary, inside));
        };
        three("three_stage", 0);
        three("three_stage_deep", index_max);
        if (options_.objective != Objective::time) return;
        // Inside each level of the network, so that the levels above carry less.
        for (const Level& level : options_.machine.levels) {
            const bool inner = level.devices < device_count(problem_.source);
            if (inner) three("three_stage_inside", level.devices);
            if (auto plan = fetch_once(problem_, options_.vocabulary, level.devices)) consider("fetch_once", *plan);
        }
    }

    void consider_steps() {
        for (const StepKind kind : all_step_kinds) {
            const Step step{kind, problem_.target};
            if (!allows(options_.vocabulary, kind) || !type_valid_step(problem_.source, step)) continue;
            consider(rule_of_step(kind), {problem_.source, problem_.target, {step}});
        }
    }

    static std::string rule_of_step(StepKind kind) {
        return kind == StepKind::exchange ? "direct_exchange" : "one_step";
    }

    // True when nothing else need be looked at.
    bool search_in(const Frame& frame) {
        SearchOptions search_options;
        search_options.objective = options_.objective;
        search_options.vocabulary = options_.vocabulary;
        search_options.tile_max = tile_max_;
        Found found = search(frame, search_options, options_.machine);
        states_ += found.states;
        stop_ = found.complete ? StopReason::exhausted : StopReason::budget;
        if (!found.arrived) return false;
        Plan plan{problem_.source, problem_.target, std::move(found.steps)};
        std::string rule = plan.steps.size() == 1 ? rule_of_step(plan.steps[0].kind) : "search";
        // What a search over digits takes for typed and priced is so where sizes divide.
        const bool even =
            frame.even || std::ranges::all_of(plan.steps, [](const Step& step) { return divides(step.layout); });
        const bool kept =
            even ? choice_.judge(std::move(rule), std::move(plan)) : consider(std::move(rule), std::move(plan));
        // Where cuts are mixed the price of an exchange is an upper estimate.
        const bool exchanges = options_.vocabulary == Vocabulary::all && frame.mixed;
        if (exchanges) consider_steps();
        const bool exact =
            kept && found.complete && frame.whole && divides(problem_.source) && divides(problem_.target);
        // For the time exchanges lead to some of the states only.
        complete_ = exact && options_.first_steps.empty() &&
                    (options_.vocabulary == Vocabulary::collectives || options_.objective != Objective::time);
        return exact;
    }

    // A plan at the lower bound in one moving step cannot be beaten in bytes or steps.
    bool done() {
        if (options_.objective == Objective::time && options_.machine.levels.size() > 1) return false;
        const Alternative* best = choice_.best();
        if (best == nullptr || moving_steps(best->plan) > 1) return false;
        if (best->verdict.received_bytes_max_device != best->verdict.lower_bound_bytes) return false;
        const bool local = moving_steps(best->plan) == 0;
        const bool native = best->plan.steps.size() == 1 && best->plan.steps[0].kind != StepKind::exchange;
        if (!local && options_.objective == Objective::time && !native) return false;
        stop_ = StopReason::one_step;
        complete_ = options_.objective != Objective::time || local;
        return true;
    }

    const Problem& problem_;
    const Options& options_;
    Choice& choice_;
    const Index tile_max_;
    StopReason stop_ = StopReason::unsearched;
    Index states_ = 0;
    bool complete_ = false;
};

Result<Synthesis> answer(const Problem& problem, const Options& options) {
    Choice choice(problem, options);
    if (options.limits.peak_bytes_max && *options.limits.peak_bytes_max < choice.floor_bytes())
        return fail(Code::infeasible,
                    fmt::format("peak: needs {} a device, limit is {}", format_bytes(choice.floor_bytes()),
                                format_bytes(*options.limits.peak_bytes_max)));
    const Problem rest{options.first_steps.empty() ? problem.source : options.first_steps.back().layout,
                       problem.target};
    Synthesizer synthesizer(options.first_steps.empty() ? problem : rest, options, choice);
    synthesizer.propose();
    const Alternative* best = choice.best();
    if (best == nullptr) return tl::unexpected(choice.no_plan());
    Synthesis made;
    synthesizer.state(made);
    made.plan = best->plan;
    made.verdict = best->verdict;
    made.picoseconds = best->picoseconds;
    made.rule = best->rule;
    made.optimal = made.verdict.received_bytes_max_device == made.verdict.lower_bound_bytes;
    const bool least_bytes = made.optimal && options.objective == Objective::bytes;
    made.search_complete = made.search_complete || least_bytes || made.plan.steps.empty();
    if (options.explain) made.alternatives = choice.take_all();
    return made;
}

// The user's steps must be typed one after the other.
Result<void> validate_first_steps(const Problem& problem, const std::vector<Step>& steps) {
    const Layout* before = &problem.source;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (auto move = type_step(*before, steps[i]); !move)
            return fail(move.error().code, fmt::format("first step {}: {}", i + 1, move.error().message));
        before = &steps[i].layout;
    }
    if (auto countable = can_count(*before, problem.target); !countable) return countable;
    return {};
}

bool mixes_reductions(const Problem& problem) {
    return !problem.source.unreduced.empty() && !problem.target.unreduced.empty() &&
           problem.source.reduction != problem.target.reduction;
}

bool mixes_combinations(const Problem& problem) {
    return mixes_reductions(problem) && combine_of(problem.source.reduction) != combine_of(problem.target.reduction);
}

// Summands of one kind do not become summands of another: the way leads through the reduced array.
Result<Synthesis> synthesize_by_halves(const Problem& problem, const Options& options) {
    Layout reduced = problem.target;
    reduced.unreduced.clear();
    Options each = options;
    each.limits = {};
    each.explain = false;
    auto made = synthesize(Problem{problem.source, reduced}, each);
    if (!made) return made;
    each.first_steps.clear();
    const auto rest = synthesize(Problem{reduced, problem.target}, each);
    if (!rest) return rest;
    made->plan.target = problem.target;
    made->plan.steps.insert(made->plan.steps.end(), rest->plan.steps.begin(), rest->plan.steps.end());
    const auto verdict = check(made->plan, options.limits);
    if (!verdict) return tl::unexpected(verdict.error());
    made->verdict = *verdict;
    made->picoseconds = saturating_add(made->picoseconds, rest->picoseconds);
    made->states += rest->states;
    made->rule = "reduce_first";
    made->optimal = false;
    made->search_complete = false;
    if (options.explain) made->alternatives = {{made->rule, made->plan, made->verdict, made->picoseconds, {}}};
    return made;
}

// What is averaged in part moves as sums do.
Result<Synthesis> synthesize_as_sums(const Problem& problem, const Options& options) {
    Options of_sums = options;
    for (Step& step : of_sums.first_steps) step.layout = as_sums(std::move(step.layout));
    auto made = synthesize(Problem{as_sums(problem.source), as_sums(problem.target)}, of_sums);
    if (!made) return made;
    if (!divide(made->plan, problem)) return synthesize_by_halves(problem, options);
    const auto verdict = check(made->plan, options.limits);
    if (!verdict) return tl::unexpected(verdict.error());
    made->verdict = *verdict;
    std::erase_if(made->alternatives, [&](Alternative& one) { return !divide(one.plan, problem); });
    return made;
}

}  // namespace

Result<Synthesis> synthesize(const Problem& problem, const Options& options) {
    for (const Layout* end : {&problem.source, &problem.target})
        if (auto valid = validate(*end); !valid) return tl::unexpected(valid.error());
    if (auto same = same_array(problem.source, problem.target); !same) return tl::unexpected(same.error());
    const bool listed = !problem.source.mesh.devices.in_order() || !problem.target.mesh.devices.in_order();
    if (listed && options.first_steps.empty()) {
        const Problem straight{straightened(problem.source), straightened(problem.target)};
        if (straight != problem) return synthesize(straight, options);
    }
    if (auto countable = can_count(problem.source, problem.target); !countable)
        return tl::unexpected(countable.error());
    if (averages_in_part(problem) && !mixes_combinations(problem)) return synthesize_as_sums(problem, options);
    if (mixes_reductions(problem)) return synthesize_by_halves(problem, options);
    if (auto typed = validate_first_steps(problem, options.first_steps); !typed) return tl::unexpected(typed.error());
    return answer(problem, options);
}

Result<Synthesis> synthesize(const Layout& source, const Layout& target, const Options& options) {
    return synthesize(Problem{source, target}, options);
}

}  // namespace reshard
