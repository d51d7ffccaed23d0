// The list of rules: a name, a line about it, and the function that proposes plans. `policy` says when each one runs.
#pragma once

#include "synth/inquiry.hpp"

namespace reshard {

/// Rules that run together, in the order of the list. A group runs once for a question; `level` once for each level.
enum class RuleGroup { identity, search, renumber, one_step, built, level, between, baseline, reorder, collectives };

struct RuleEntry {
    Rule rule;
    RuleGroup group;
    void (*propose)(Inquiry&);
    Vocabulary vocabulary = Vocabulary::collectives;  ///< all: the rule exchanges, so `collectives` skips it
};

[[nodiscard]] std::span<const RuleEntry> rule_table();

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
