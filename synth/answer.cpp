// Propose candidates, judge each, keep the cheapest. The searchers may be wrong; the judge is not.
#include "synth/answer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "synth/candidates.hpp"
#include "synth/rules/cross_mesh.hpp"
#include "synth/rules/fetch_once.hpp"
#include "synth/rules/fuse_steps.hpp"
#include "synth/rules/three_stage.hpp"
#include "synth/search/search.hpp"

namespace reshard {

namespace {

bool has_summands(const Problem& problem) {
    return !problem.source.unreduced.empty() || !problem.target.unreduced.empty();
}

bool at_bound(const Alternative& plan) {
    return plan.verdict.received_bytes_max_device == plan.verdict.lower_bound_bytes;
}

// What no plan can be better than, whatever the vocabulary.
bool unbeatable(const Alternative& best, Objective objective) {
    const Index moves = moving_steps(best.plan);
    switch (objective) {
        case Objective::time:
            // Every plan ends with a copy of the target's tile; slices are views.
            return std::ranges::all_of(best.plan.steps, [](const Step& step) { return step.kind == StepKind::slice; });
        case Objective::bytes:
            return at_bound(best);
        case Objective::steps:
            break;
    }
    return moves == 0 || (moves == 1 && at_bound(best) && best.verdict.lower_bound_bytes > 0);
}

class Synthesizer {
public:
    /// `problem` is what is left behind the user's first steps, `choice` that for the whole.
    Synthesizer(const Problem& problem, const Options& options, Candidates& choice)
        : problem_(problem), options_(options), choice_(choice) {}

    [[nodiscard]] bool settled() const { return choice_.settled(); }
    bool consider(std::string rule, Plan plan) { return choice_.consider(std::move(rule), std::move(plan)); }

    /// pre: both ends in one order of devices.
    void propose_in_one_order() {
        if (settled_by_one_pass()) return;
        if (same_tiles(problem_.source, problem_.target))
            consider("identity", {problem_.source, problem_.target, {}});
        else if (searchable(problem_))
            propose_in_digits();
        else
            propose_between();
    }

    /// Where there are no common digits to search over.
    void propose_between() {
        if (settled_by_one_pass()) return;
        consider_steps();
        for (Proposal& proposal : between(problem_, options_.vocabulary))
            consider(std::move(proposal.rule), std::move(proposal.plan));
        consider_naive();
    }

    void state(Synthesis& made) const {
        made.search_complete = complete_;
        made.stop_reason = stop_;
        made.states = states_;
    }

private:
    // Where one exchange is as good as any steps, a plan of one step that receives what it must cannot be beaten.
    bool settled_by_one_pass() {
        if (choice_.settled()) return true;
        if (!options_.capabilities.one_exchange || options_.vocabulary != Vocabulary::all ||
            !options_.first_steps.empty() || same_tiles(problem_.source, problem_.target))
            return false;
        consider_steps();
        if (choice_.best() == nullptr || !at_bound(*choice_.best())) return false;
        stop_ = StopReason::one_step;
        choice_.settle();
        if (options_.explain) consider_naive();
        return true;
    }

    void propose_in_digits() {
        const std::size_t levels = options_.machine.levels.size();
        const bool by_level = options_.objective == Objective::time && levels > 1;
        const auto frame = levels <= levels_max ? make_search_space(problem_, by_level) : std::optional<SearchSpace>();
        if (frame && search_in(*frame)) choice_.settle();
        if (choice_.settled() && !options_.explain) return;
        consider_steps();
        if (!choice_.settled() && done()) choice_.settle();
        if (choice_.settled() && !options_.explain) return;
        construct();
        consider_naive();
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
        if (std::exchange(steps_considered_, true)) return;
        for (const StepKind kind : all_step_kinds) {
            const Step step{kind, problem_.target};
            if (!allows(options_.vocabulary, kind) || !type_valid_step(problem_.source, step)) continue;
            consider(rule_of_step(kind), {problem_.source, problem_.target, {step}});
        }
    }

    // As it is: fused, it would not be naive any more. Where it holds too much it is only there to be shown.
    void consider_naive() {
        if (!options_.explain && global_bytes(problem_.source) > choice_.peak_bytes_max()) return;
        if (auto naive = gather_then_slice(problem_)) choice_.show("gather_then_slice", std::move(*naive));
    }

    static std::string rule_of_step(StepKind kind) {
        return kind == StepKind::exchange ? "direct_exchange" : "one_step";
    }

    // True when nothing else need be looked at.
    bool search_in(const SearchSpace& frame) {
        SearchOptions search_options;
        search_options.objective = options_.objective;
        search_options.vocabulary = options_.vocabulary;
        search_options.tile_max = choice_.peak_bytes_max() / size_of(problem_.source.dtype);
        Found found = search(frame, search_options, options_.machine);
        states_ += found.states;
        stop_ = found.complete ? StopReason::exhausted : StopReason::budget;
        if (!found.arrived) return false;
        Plan plan{problem_.source, problem_.target, std::move(found.steps)};
        std::string rule = plan.steps.size() == 1 ? rule_of_step(plan.steps[0].kind) : "search";
        // What a search over digits takes for typed and priced is so where sizes divide, or all devices are looked at.
        const bool priced = frame.even || frame.exact ||
                            std::ranges::all_of(plan.steps, [](const Step& step) { return divides(step.layout); });
        const bool kept =
            priced ? choice_.judge(std::move(rule), std::move(plan)) : consider(std::move(rule), std::move(plan));
        // Where cuts are mixed the price of an exchange is an upper estimate.
        const bool exchanges = options_.vocabulary == Vocabulary::all && frame.mixed;
        if (exchanges) consider_steps();
        const bool exhausted = kept && found.complete && frame.whole && (frame.even || frame.exact);
        // Summands are searched along their own digits only.
        if (!exhausted || has_summands(problem_)) return false;
        const Alternative& best = *choice_.best();
        const bool timed = options_.objective == Objective::time;
        // For the time exchanges lead to some of the states only, and a plan in pieces takes longer than its price.
        complete_ = options_.first_steps.empty() &&
                    (!timed || (options_.vocabulary == Vocabulary::collectives && piece_count(best.execution) == 1));
        // Exchanges between ragged ends are not all looked at for the time; and what the busiest device receives in all
        // may be less than the sum over the steps, which is searched.
        if (timed) return complete_ || (!exchanges && divides(problem_.source) && divides(problem_.target));
        return frame.even || at_bound(best);
    }

    // True when the best plan has one moving step and cannot be beaten.
    bool done() {
        const Alternative* best = choice_.best();
        if (best == nullptr || moving_steps(best->plan) > 1 || !unbeatable(*best, options_.objective)) return false;
        stop_ = StopReason::one_step;
        return true;
    }

    const Problem& problem_;
    const Options& options_;
    Candidates& choice_;
    StopReason stop_ = StopReason::unsearched;
    Index states_ = 0;
    bool complete_ = false;
    bool steps_considered_ = false;
};

// The steps of the best plan found, whatever it holds.
std::vector<Step> steps_in_one_order(const Problem& problem, Options options) {
    options.explain = false;
    options.limits = {};
    options.capabilities = {};
    options.first_steps.clear();
    Candidates choice(problem, options);
    Synthesizer(problem, options, choice).propose_in_one_order();
    return choice.best() == nullptr ? std::vector<Step>{} : choice.best()->plan.steps;
}

// The problem between two orders leads to one in one order, and that to no other.
void propose_between_orders(const Problem& problem, const Options& options, Synthesizer& synthesizer) {
    synthesizer.propose_between();
    if (synthesizer.settled()) return;
    if (const auto made = in_the_order_of_the_source(problem))
        synthesizer.consider("reorder", reordered(problem, steps_in_one_order(*made, options)));
}

}  // namespace

Result<Synthesis> answer(const Problem& problem, const Options& options) {
    Candidates choice(problem, options);
    if (options.limits.peak_bytes_max && *options.limits.peak_bytes_max < choice.floor_bytes())
        return fail(Code::infeasible,
                    fmt::format("peak: needs {} a device, limit is {}", format_bytes(choice.floor_bytes()),
                                format_bytes(*options.limits.peak_bytes_max)));
    const Problem behind{options.first_steps.empty() ? problem.source : options.first_steps.back().layout,
                         problem.target};
    const Problem& rest = options.first_steps.empty() ? problem : behind;
    Synthesizer synthesizer(rest, options, choice);
    if (same_order(rest.source.mesh, rest.target.mesh))
        synthesizer.propose_in_one_order();
    else
        propose_between_orders(rest, options, synthesizer);
    const Alternative* best = choice.best();
    if (best == nullptr) return tl::unexpected(choice.no_plan());
    Synthesis made;
    synthesizer.state(made);
    made.plan = best->plan;
    made.execution = best->execution;
    made.verdict = best->verdict;
    made.picoseconds = best->picoseconds;
    made.rule = best->rule;
    made.optimal = at_bound(*best);
    made.search_complete = made.search_complete || unbeatable(*best, options.objective);
    if (options.explain) made.alternatives = choice.take_all();
    return made;
}

}  // namespace reshard
