#include "synth/answer.hpp"

#include <algorithm>
#include <bitset>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "synth/policy.hpp"

namespace reshard {

namespace {

// Takes one question through the rows of the policy. A searcher may be wrong; the judge behind `Candidates` is not.
class PolicyWalk {
public:
    PolicyWalk(const Problem& problem, const Options& options, Candidates& candidates)
        : asked_{problem, options, candidates, answer} {}

    void through(std::span<const Row> rows) {
        for (const Row& row : rows)
            if (row.applies(asked_)) {
                row_ = row.named;
                if (through(row) || !row.hands_on) return;
            }
    }

    void report(Synthesis& made) {
        made.row = row_;
        made.search_complete = asked_.complete;
        made.stop_reason =
            recognized_ ? StopReason::one_step : asked_.searched.stopped.value_or(StopReason::unsearched);
        made.states = asked_.searched.states;
        made.rules = std::move(reports_);
    }

private:
    // True if the row settled the question.
    bool through(const Row& row) {
        bool enough = false;
        for (const Stage& stage : row.stages) {
            if (enough && !stage.may_improve) {
                asked_.candidates.settle();
                if (!asked_.options.explain) return true;
            }
            if (stage.runs(asked_)) ask(stage.group);
            if (enough || !stage.enough.holds(asked_)) continue;
            enough = true;
            recognized_ = stage.enough.recognized;
        }
        return enough;
    }

    void ask(RuleGroup group) {
        const auto bit = static_cast<std::size_t>(group);
        if (asked_before_[bit]) return;
        asked_before_.set(bit);
        if (group != RuleGroup::level) return ask_rules(group);
        for (asked_.level = 0; asked_.level < asked_.options.machine.levels.size(); ++asked_.level) ask_rules(group);
    }

    void ask_rules(RuleGroup group) {
        const Options& options = asked_.options;
        for (const RuleEntry& entry : rule_table())
            if (entry.group == group && !is_off(options, entry.rule.name) &&
                (entry.vocabulary == Vocabulary::collectives || options.vocabulary == Vocabulary::all))
                ask(entry);
    }

    void ask(const RuleEntry& entry) {
        const Candidates::Count before = asked_.candidates.count();
        const Index begin = now(asked_.options);
        asked_.rule = entry.rule.name;
        entry.propose(asked_);
        if (!asked_.options.explain) return;
        auto report = std::ranges::find(reports_, entry.rule.name, &RuleReport::rule);
        if (report == reports_.end()) report = reports_.insert(report, {entry.rule.name});
        report->candidates += asked_.candidates.count().proposed - before.proposed;
        report->kept += asked_.candidates.count().kept - before.kept;
        report->nanoseconds += now(asked_.options) - begin;
    }

    Inquiry asked_;
    PolicyRow row_;
    bool recognized_ = false;
    std::bitset<16> asked_before_;
    std::vector<RuleReport> reports_;
};

}  // namespace

Result<Synthesis> answer(const Problem& problem, const Options& options) {
    Candidates candidates(problem, options);
    if (options.limits.peak_bytes_max && *options.limits.peak_bytes_max < candidates.floor_bytes())
        return fail(Code::infeasible,
                    fmt::format("peak: needs {} a device, limit is {}", format_bytes(candidates.floor_bytes()),
                                format_bytes(*options.limits.peak_bytes_max)));
    const Problem behind{options.first_steps.empty() ? problem.source : options.first_steps.back().layout,
                         problem.target};
    PolicyWalk walk(behind, options, candidates);
    walk.through(policy());
    const Alternative* best = candidates.best();
    if (best == nullptr) return tl::unexpected(candidates.no_plan());
    RESHARD_TRY(const auto& judged, within(*best, options.limits));
    Synthesis made{judged, best->picoseconds, best->rule, at_bound(*best)};
    walk.report(made);
    made.search_complete = (made.search_complete || unbeatable(*best, options.objective)) && !is_off(options, "search");
    if (options.explain) made.alternatives = candidates.take_all();
    return made;
}

}  // namespace reshard
