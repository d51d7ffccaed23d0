// One question on its way through the planner: the question, its candidates, and the report of the search.
#pragma once

#include "synth/candidates.hpp"

namespace reshard {

/// The report of the rule `search` beside its plan.
struct SearchReport {
    std::optional<StopReason> stopped;  ///< empty if the search was not asked or had no space
    Index states = 0;
    bool exhausted = false;     ///< its plan is kept; no plan in the space costs less
    bool even = false;          ///< sizes divide, so steps receive exactly as many bytes as priced
    bool estimates = false;     ///< exchanges were priced by an upper estimate
    bool sums_settled = false;  ///< the space held every way in which exchanges and other cuts may help a sum
};

/// The question that a rule reads, and the candidates that it adds to.
struct Inquiry {
    const Problem& problem;  ///< the part behind the user's first steps
    const Options& options;
    Candidates& candidates;
    Result<Synthesis> (*answer)(const Problem&, const Options&);  ///< for a rule that poses a question of its own
    std::string_view rule = {};                                   ///< the rule that runs now
    std::size_t level = 0;                                        ///< RuleGroup::level: the level of the machine
    SearchReport searched = {};
    bool complete = false;  ///< the vocabulary holds no better plan than the one that the search found

    void consider(std::optional<Plan> plan) {
        if (plan) candidates.consider(std::string(rule), std::move(*plan));
    }
};

[[nodiscard]] inline bool has_summands(const Problem& problem) {
    return !problem.source.unreduced.empty() || !problem.target.unreduced.empty();
}

/// True if no plan can be better than the best candidate so far.
[[nodiscard]] inline bool unbeaten(const Inquiry& asked) {
    const Alternative* best = asked.candidates.best();
    return best != nullptr && unbeatable(*best, asked.options.objective);
}

}  // namespace reshard
