// A question to the planner: two layouts, what is best, what may be used, and the limits.
#pragma once

#include "reshard/cost.hpp"

namespace reshard {

struct Problem {
    Layout source;
    Layout target;
    friend bool operator==(const Problem&, const Problem&) = default;
};

enum class Objective { time, bytes, steps };

[[nodiscard]] std::string_view name(Objective objective);
[[nodiscard]] std::string_view name(Vocabulary vocabulary);
[[nodiscard]] Result<Objective> parse_objective(std::string_view text);
[[nodiscard]] Result<Vocabulary> parse_vocabulary(std::string_view text);

struct Options {
    Objective objective = Objective::time;
    Vocabulary vocabulary = Vocabulary::all;
    Limits limits = {};
    Machine machine = laptop();
    /// Of the backend that is to run the plan (Backend::capabilities). When it is not known each step runs as a step.
    Capabilities capabilities = {};
    /// Tactics: these come first and run as steps, the rest is synthesized, the whole is judged.
    std::vector<Step> first_steps = {};
    bool explain = false;  ///< also judge and list what need not be looked at once a plan is chosen, and what is over a
                           ///< limit; it changes no plan
};

}  // namespace reshard
