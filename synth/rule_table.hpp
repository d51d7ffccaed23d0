// The list of rules, and the question that each one gets. `policy` says when a rule runs.
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

/// Rules that run together, in the order of the list. A group runs once for a question; `level` once for each level.
enum class RuleGroup {
    identity,
    search,
    split,
    renumber,
    one_step,
    built,
    level,
    between,
    baseline,
    reorder,
    collectives
};

struct RuleEntry {
    Rule rule;
    RuleGroup group;
    void (*propose)(Inquiry&);
    Vocabulary vocabulary = Vocabulary::collectives;  ///< all: the rule exchanges, so `collectives` skips it
};

[[nodiscard]] std::span<const RuleEntry> rule_table();

/// The name of a plan of one step: that of the rule for such a step.
[[nodiscard]] constexpr std::string_view name_of_step(StepKind kind) {
    return kind == StepKind::exchange ? "direct_exchange" : "one_step";
}

/// The rule `search`. Proposes the best plan of each space, fine digits first, and fills in `asked.searched`.
void search_digits(Inquiry& asked);

/// The rule `split_dims`. Searches a view: each digit of a dimension is a dimension. It proposes plans that cost less
/// than the best candidate; their first and last steps are views. If the search is not complete, `asked.complete`
/// becomes false. pre: a best candidate, no first steps, ends that divide.
void search_split_dims(Inquiry& asked);

/// The time in nanoseconds if explain has a clock, otherwise 0.
[[nodiscard]] inline Index now(const Options& options) {
    return options.explain && options.clock != nullptr ? options.clock() : 0;
}

[[nodiscard]] bool is_off(const Options& options, std::string_view rule);

/// True if the options allow every rule of the group.
[[nodiscard]] bool all_on(const Options& options, RuleGroup group);

/// The same options for collectives alone.
[[nodiscard]] Options of_collectives(Options options);

/// Bit i is set if the i-th rule of the list is off. Errors: syntax, if no rule has a given name.
[[nodiscard]] Result<Index> rules_off(const Options& options);

}  // namespace reshard
