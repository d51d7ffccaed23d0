// The front door: propose candidates, judge each, keep the cheapest. The searchers may be wrong; the judge is not.
#include "reshard/synthesize.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "synth/fetch_once.hpp"
#include "synth/frame.hpp"
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

// The order of candidates under an objective; later entries break ties.
using Rank = std::tuple<Index, Index, Index, Index, Index>;

Index moving_steps(const Plan& plan) {
    return std::ranges::count_if(plan.steps, [](const Step& step) { return !is_local(step.kind); });
}

Rank rank_of(const Alternative& candidate, Objective objective) {
    const Index received = candidate.verdict.received_bytes_max_device;
    const Index moves = moving_steps(candidate.plan);
    const Index peak = candidate.verdict.peak_bytes;
    const Index time = candidate.picoseconds;
    const auto steps = static_cast<Index>(candidate.plan.steps.size());
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

class Synthesizer {
public:
    Synthesizer(const Problem& problem, const Options& options)
        : problem_(problem),
          options_(options),
          floor_bytes_(std::max(tile_bytes(problem.source), tile_bytes(problem.target))) {}

    Result<Synthesis> run() {
        if (options_.limits.peak_bytes_max && *options_.limits.peak_bytes_max < floor_bytes_)
            return fail(Code::infeasible,
                        fmt::format("peak: needs {} a device, limit is {}", format_bytes(floor_bytes_),
                                    format_bytes(*options_.limits.peak_bytes_max)));
        propose();
        if (kept_.empty()) return tl::unexpected(no_plan());
        std::ranges::stable_sort(kept_, {}, [&](const Alternative& a) { return rank_of(a, options_.objective); });
        return finish();
    }

private:
    void propose() {
        if (same_tiles(problem_.source, problem_.target)) {
            consider("identity", {problem_.source, problem_.target, {}});
            return;
        }
        const std::size_t levels = options_.machine.levels.size();
        const bool by_level = options_.objective == Objective::time && levels > 1;
        const auto frame = levels <= levels_max ? frame_of(problem_, by_level) : std::optional<Frame>();
        const bool searched = frame && search_in(*frame);
        if (!searched || options_.explain) {
            consider_steps();
            if (!done() || options_.explain) construct();
        }
        // As it is: fused, it would not be naive any more.
        if (!options_.explain) return;
        if (auto naive = gather_then_slice(problem_)) judge("gather_then_slice", std::move(*naive));
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
        search_options.tile_max = floor_bytes_ / size_of(problem_.source.dtype);
        Found found = search(frame, search_options, options_.machine);
        states_ += found.states;
        stop_ = found.complete ? StopReason::exhausted : StopReason::budget;
        if (!found.arrived) return false;
        Plan plan{problem_.source, problem_.target, std::move(found.steps)};
        std::string rule = plan.steps.size() == 1 ? rule_of_step(plan.steps[0].kind) : "search";
        // What a search over digits takes for typed and priced is so where sizes divide.
        const bool even =
            frame.even || std::ranges::all_of(plan.steps, [](const Step& step) { return divides(step.layout); });
        const bool kept = even ? judge(std::move(rule), std::move(plan)) : consider(std::move(rule), std::move(plan));
        // Where cuts are mixed the price of an exchange is an upper estimate.
        const bool exchanges = options_.vocabulary == Vocabulary::all && frame.mixed;
        if (exchanges) consider_steps();
        const bool exact =
            kept && found.complete && frame.whole && divides(problem_.source) && divides(problem_.target);
        // For the time exchanges lead to some of the states only.
        complete_ = exact && (options_.vocabulary == Vocabulary::collectives || options_.objective != Objective::time);
        return exact;
    }

    bool consider(std::string rule, Plan plan) { return judge(std::move(rule), shortcut(std::move(plan), options_)); }

    // Judges a candidate; keeps it when it is right and within the limits, else notes why not. True when it is kept.
    bool judge(std::string rule, Plan plan) {
        // Ends in the user's own names.
        if (!plan.steps.empty() && same_tiles(plan.steps.back().layout, plan.target))
            plan.steps.back().layout = plan.target;
        // The first rule that finds a plan keeps it.
        const auto same = [&](const Alternative& other) { return other.plan == plan; };
        if (std::ranges::any_of(kept_, same)) return true;
        if (std::ranges::any_of(rejected_, same)) return false;
        auto verdict = check(plan);
        if (!verdict) return false;  // a searcher was wrong, or sizes do not divide
        Alternative candidate{std::move(rule), std::move(plan), *verdict, 0, {}};
        candidate.picoseconds = plan_picoseconds(candidate.plan, candidate.verdict, options_.machine);
        candidate.lost = over_limit(candidate);
        const bool kept = candidate.lost.empty();
        (kept ? kept_ : rejected_).push_back(std::move(candidate));
        return kept;
    }

    // Why a right plan may not be chosen; empty when it may. Of plans over the user's limit the nearest is remembered.
    std::string over_limit(const Alternative& candidate) {
        const Verdict& verdict = candidate.verdict;
        if (verdict.peak_bytes > floor_bytes_)
            return fmt::format("peak {} over the floor {}", format_bytes(verdict.peak_bytes),
                               format_bytes(floor_bytes_));
        // The floor is within the peak limit, so only a footprint can be over.
        if (!options_.limits.footprint_bytes_max) return {};
        const auto within = check(candidate.plan, options_.limits);
        if (within) return {};
        if (!limit_error_ || verdict.footprint_bytes < nearest_footprint_) {
            limit_error_ = within.error();
            nearest_footprint_ = verdict.footprint_bytes;
        }
        return within.error().message;
    }

    // A plan at the lower bound in one moving step cannot be beaten in bytes or steps.
    bool done() {
        if (options_.objective == Objective::time && options_.machine.levels.size() > 1) return false;
        const auto best =
            std::ranges::min_element(kept_, {}, [&](const Alternative& a) { return rank_of(a, options_.objective); });
        if (best == kept_.end() || moving_steps(best->plan) > 1) return false;
        if (best->verdict.received_bytes_max_device != best->verdict.lower_bound_bytes) return false;
        const bool local = moving_steps(best->plan) == 0;
        const bool native = best->plan.steps.size() == 1 && best->plan.steps[0].kind != StepKind::exchange;
        if (!local && options_.objective == Objective::time && !native) return false;
        stop_ = StopReason::one_step;
        complete_ = options_.objective != Objective::time || local;
        return true;
    }

    Error no_plan() const {
        if (limit_error_) return *limit_error_;
        return {Code::infeasible,
                fmt::format("no sequence of collectives keeps the peak at the floor of {}: sizes do not divide; "
                            "the vocabulary 'all' has a plan",
                            format_bytes(floor_bytes_))};
    }

    Result<Synthesis> finish() {
        Synthesis made;
        const Alternative& best = kept_.front();
        made.plan = best.plan;
        made.verdict = best.verdict;
        made.picoseconds = best.picoseconds;
        made.rule = best.rule;
        made.optimal = best.verdict.received_bytes_max_device == best.verdict.lower_bound_bytes;
        const bool least_bytes = made.optimal && options_.objective == Objective::bytes;
        made.search_complete = complete_ || least_bytes || best.plan.steps.empty();
        made.stop_reason = stop_;
        made.states = states_;
        if (!options_.explain) return made;
        for (Alternative& other : kept_) {
            if (&other != &kept_.front()) other.lost = reason_against(other, kept_.front());
            made.alternatives.push_back(other);
        }
        std::ranges::move(rejected_, std::back_inserter(made.alternatives));
        return made;
    }

    std::string reason_against(const Alternative& loser, const Alternative& winner) const {
        const auto bytes = [](const Alternative& a) { return a.verdict.received_bytes_max_device; };
        if (options_.objective == Objective::time && loser.picoseconds > winner.picoseconds)
            return fmt::format("{:.2f}x the time",
                               static_cast<double>(loser.picoseconds) / static_cast<double>(winner.picoseconds));
        if (options_.objective == Objective::bytes && bytes(loser) > bytes(winner))
            return fmt::format("receives {} more", format_bytes(bytes(loser) - bytes(winner)));
        if (moving_steps(loser.plan) > moving_steps(winner.plan)) return "more steps";
        if (bytes(loser) > bytes(winner))
            return fmt::format("receives {} more", format_bytes(bytes(loser) - bytes(winner)));
        return "no better";
    }

    const Problem& problem_;
    const Options& options_;
    const Index floor_bytes_;
    std::vector<Alternative> kept_;
    std::vector<Alternative> rejected_;
    std::optional<Error> limit_error_;
    Index nearest_footprint_ = 0;
    StopReason stop_ = StopReason::unsearched;
    Index states_ = 0;
    bool complete_ = false;
};

bool mixes_reductions(const Problem& problem) {
    return !problem.source.unreduced.empty() && !problem.target.unreduced.empty() &&
           problem.source.reduction != problem.target.reduction;
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

}  // namespace

Result<Synthesis> synthesize(const Problem& problem, const Options& options) {
    for (const Layout* end : {&problem.source, &problem.target})
        if (auto valid = validate(*end); !valid) return tl::unexpected(valid.error());
    if (auto same = same_array(problem.source, problem.target); !same) return tl::unexpected(same.error());
    if (auto countable = can_count(problem.source, problem.target); !countable)
        return tl::unexpected(countable.error());
    if (mixes_reductions(problem)) return synthesize_by_halves(problem, options);
    return Synthesizer(problem, options).run();
}

Result<Synthesis> synthesize(const Layout& source, const Layout& target, const Options& options) {
    return synthesize(Problem{source, target}, options);
}

Result<std::vector<Synthesis>> synthesize(std::span<const Problem> problems, const Options& options) {
    std::vector<Synthesis> made;
    for (std::size_t i = 0; i < problems.size(); ++i) {
        auto one = synthesize(problems[i], options);
        if (!one) return fail(one.error().code, fmt::format("array {}: {}", i, one.error().message));
        made.push_back(std::move(*one));
    }
    return made;
}

}  // namespace reshard
