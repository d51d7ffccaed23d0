// Propose candidates, judge each, keep the cheapest. The searchers may be wrong; the judge is not.
#include "synth/answer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "synth/rule_table.hpp"
#include "synth/rules/cross_mesh.hpp"

namespace reshard {

namespace {

bool has_summands(const Problem& problem) {
    return !problem.source.unreduced.empty() || !problem.target.unreduced.empty();
}

class Synthesizer {
public:
    /// `problem` is what is left behind the user's first steps, `choice` that for the whole.
    Synthesizer(const Problem& problem, const Options& options, Candidates& choice)
        : problem_(problem), options_(options), choice_(choice), inquiry_{problem, options, choice} {}

    void propose() {
        if (same_order(problem_.source.mesh, problem_.target.mesh))
            propose_in_one_order();
        else
            propose_between_orders();
        // Within a limit on memory collectives may run in pieces where no exchange does.
        const bool nothing = choice_.best() == nullptr;
        if (nothing || (weighs_collectives(options_) && !choice_.settled() && !unbeaten())) ask(Stage::collectives);
    }

    /// pre: both ends in one order of devices.
    void propose_in_one_order() {
        if (settled_by_one_pass()) return;
        if (same_tiles(problem_.source, problem_.target) && ask(Stage::nothing)) return;
        if (searchable(problem_))
            propose_in_digits();
        else
            propose_between();
    }

    void state(Synthesis& made) {
        made.search_complete = complete_;
        made.stop_reason = stop_;
        made.states = inquiry_.searched.states;
        made.rules = std::move(reports_);
    }

private:
    void propose_between_orders() {
        propose_between();
        if (!choice_.settled()) ask(Stage::orders);
    }

    // Where there are no common digits to search over.
    void propose_between() {
        if (settled_by_one_pass()) return;
        ask(Stage::search);
        stop_ = inquiry_.searched.stopped.value_or(stop_);
        if (settled_by_search()) choice_.settle();
        if (choice_.settled() && !options_.explain) return;
        ask_one_step();
        ask(Stage::between);
        if (options_.machine.levels.size() > 1) ask_levels();
        ask(Stage::baseline);
    }

    void propose_in_digits() {
        ask(Stage::search);
        stop_ = inquiry_.searched.stopped.value_or(stop_);
        const bool settled = settled_by_search();
        if (may_gain_by_numbers()) ask(Stage::numbers);
        if (settled) choice_.settle();
        if (choice_.settled() && !options_.explain) return;
        ask_one_step();
        if (!choice_.settled() && done()) choice_.settle();
        if (choice_.settled() && !options_.explain) return;
        ask(Stage::built);
        // Inside each level of the network, so that the levels above carry less.
        ask_levels();
        ask(Stage::baseline);
    }

    // Where one exchange is as good as any steps, a plan of one step that receives what it must cannot be beaten.
    bool settled_by_one_pass() {
        if (choice_.settled()) return true;
        if (!options_.capabilities.one_exchange || options_.vocabulary != Vocabulary::all ||
            !options_.first_steps.empty() || same_tiles(problem_.source, problem_.target))
            return false;
        ask_one_step();
        if (choice_.best() == nullptr || !at_bound(*choice_.best())) return false;
        stop_ = StopReason::one_step;
        choice_.settle();
        if (options_.explain) ask(Stage::baseline);
        return true;
    }

    // True when nothing else need be looked at.
    bool settled_by_search() {
        const SearchReport& searched = inquiry_.searched;
        if (choice_.best() == nullptr) return false;
        // Where cuts are mixed the price of an exchange is an upper estimate.
        if (searched.estimates && !ask_one_step()) return false;
        const bool timed = options_.objective == Objective::time;
        // Reductions in pieces of mixed cuts are not all looked at, nor are their times on several levels.
        if (!searched.exhausted || (has_summands(problem_) && (timed || !searched.sums_settled))) return false;
        const Alternative& best = *choice_.best();
        // What the search adds up does not end so late where steps overlap: other plans may end sooner.
        if (timed && overlaps_levels(options_)) return false;
        // For the time exchanges lead to some of the states only, and a plan in pieces takes longer than its price.
        const bool all_kinds =
            options_.vocabulary == Vocabulary::collectives ||
            (searched.sums_settled && searched.even && !searched.estimates && !options_.capabilities.one_exchange);
        complete_ = options_.first_steps.empty() && (!timed || (all_kinds && piece_count(best.execution()) == 1));
        // Exchanges between ragged tiles are not all looked at for the time, nor priced by the messages that they take;
        // and what the busiest device receives in all may be less than the sum over the steps, which is searched.
        const auto even = [](const Step& step) { return divides(step.layout); };
        if (timed) {
            return complete_ ||
                   (!searched.estimates && divides(problem_.source) && std::ranges::all_of(best.plan().steps, even));
        }
        return searched.even || at_bound(best);
    }

    bool unbeaten() const {
        const Alternative* best = choice_.best();
        return best != nullptr && unbeatable(*best, options_.objective);
    }

    // True when the best plan has one moving step and cannot be beaten.
    bool done() {
        if (!unbeaten() || moving_steps(choice_.best()->plan()) > 1) return false;
        stop_ = StopReason::one_step;
        return true;
    }

    // Numbered anew, tiles take a permute and an all-to-all: no less than 3/2 of the bound.
    bool may_gain_by_numbers() const {
        const Alternative* best = choice_.best();
        if (best == nullptr || options_.vocabulary != Vocabulary::collectives) return false;
        const Verdict& verdict = best->verdict();
        return std::ranges::count(best->plan().steps, StepKind::permute, &Step::kind) > 1 ||
               verdict.received_bytes_max_device / 3 > verdict.lower_bound_bytes / 2;
    }

    void ask_levels() {
        for (std::size_t i = 0; options_.objective == Objective::time && i < options_.machine.levels.size(); ++i) {
            inquiry_.level = i;
            ask(Stage::level);
        }
    }

    // Once.
    bool ask_one_step() {
        if (!one_step_) one_step_ = ask(Stage::one_step);
        return *one_step_;
    }

    // False when a rule of this stage is off.
    bool ask(Stage stage) {
        bool all_on = true;
        for (const RuleEntry& entry : rule_table()) {
            if (entry.stage != stage || (entry.vocabulary == Vocabulary::all && options_.vocabulary != Vocabulary::all))
                continue;
            if (is_off(options_, entry.rule.name))
                all_on = false;
            else
                ask(entry);
        }
        return all_on;
    }

    void ask(const RuleEntry& entry) {
        const Candidates::Count before = choice_.count();
        const Index begin = now(options_);
        inquiry_.rule = entry.rule.name;
        entry.propose(inquiry_);
        if (!options_.explain) return;
        auto report = std::ranges::find(reports_, entry.rule.name, &RuleReport::rule);
        if (report == reports_.end()) report = reports_.insert(report, {entry.rule.name});
        report->candidates += choice_.count().proposed - before.proposed;
        report->kept += choice_.count().kept - before.kept;
        report->nanoseconds += now(options_) - begin;
    }

    const Problem& problem_;
    const Options& options_;
    Candidates& choice_;
    Inquiry inquiry_;
    std::vector<RuleReport> reports_;
    StopReason stop_ = StopReason::unsearched;
    bool complete_ = false;
    std::optional<bool> one_step_;
};

}  // namespace

std::vector<Step> steps_in_one_order(const Problem& problem, Options options) {
    options.explain = false;
    options.limits = {};
    options.capabilities = {};
    options.first_steps.clear();
    Candidates choice(problem, options);
    Synthesizer(problem, options, choice).propose_in_one_order();
    return choice.best() == nullptr ? std::vector<Step>{} : choice.best()->plan().steps;
}

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
    synthesizer.propose();
    const Alternative* best = choice.best();
    if (best == nullptr) return tl::unexpected(choice.no_plan());
    RESHARD_TRY(const auto& judged, within(*best, options.limits));
    Synthesis made{judged, best->picoseconds, best->rule, at_bound(*best)};
    synthesizer.state(made);
    made.search_complete = (made.search_complete || unbeatable(*best, options.objective)) && !is_off(options, "search");
    if (options.explain) made.alternatives = choice.take_all();
    return made;
}

}  // namespace reshard
