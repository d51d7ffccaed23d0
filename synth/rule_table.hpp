// The rules by which plans are found, as one table. `answer` walks it.
#pragma once

#include "synth/candidates.hpp"

namespace reshard {

/// What the rule `search` says beside its plan.
struct SearchReport {
    std::optional<StopReason> stopped;  ///< empty when it was not asked, or had nothing to search over
    Index states = 0;
    bool exhausted = false;     ///< its plan is kept, and nothing that it looks at costs less
    bool even = false;          ///< sizes divide, so that steps receive what they are priced by
    bool estimates = false;     ///< exchanges were searched by an upper estimate of their price
    bool sums_settled = false;  ///< also what sums may gain by exchanges and by cuts of other digits was looked at
};

/// What a rule is asked, and where its candidates go.
struct Inquiry {
    const Problem& problem;  ///< what is left behind the user's first steps
    const Options& options;
    Candidates& candidates;
    std::string_view rule = {};  ///< that is asked
    std::size_t level = 0;       ///< Stage::level: which one
    SearchReport searched = {};

    void consider(std::optional<Plan> plan) {
        if (plan) candidates.consider(std::string(rule), std::move(*plan));
    }
};

/// When rules are asked. Which stages a question has, and where they end, is for `answer` to say.
enum class Stage {
    nothing,      ///< both ends hold the same
    search,       ///< both ends are written in the digits of one mesh, or may be
    numbers,      ///< as search, where its plan leaves room for a permute of other digits
    one_step,     ///< every question
    built,        ///< as search, where it has not settled the question
    level,        ///< as built and, where there are several levels, between: for the least time, once for each level
    between,      ///< there are no common digits to search over
    baseline,     ///< every question
    orders,       ///< the ends list their devices in different orders
    collectives,  ///< questions that weigh what collectives alone would answer (weighs_collectives), or have no other
};

struct RuleEntry {
    Rule rule;
    Stage stage;
    void (*propose)(Inquiry&);
    Vocabulary vocabulary = Vocabulary::collectives;  ///< all: it exchanges, and is not asked for plans of collectives
};

[[nodiscard]] std::span<const RuleEntry> rule_table();

/// Nanoseconds, for explain where a clock is given; else 0.
[[nodiscard]] inline Index now(const Options& options) {
    return options.explain && options.clock != nullptr ? options.clock() : 0;
}

[[nodiscard]] bool is_off(const Options& options, std::string_view rule);

/// Bit i for the i-th rule of the table that is off. Errors: syntax, a name that no rule has.
[[nodiscard]] Result<Index> rules_off(const Options& options);

}  // namespace reshard
