// A question to the planner: two layouts, what is best, what may be used, and the limits.
#pragma once

#include <string>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// One array and where it is wanted.
struct Problem {
    Layout source;  ///< where the array is
    Layout target;  ///< where it is wanted
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// The same problem with ends of one shape: a reshape moves nothing by itself. Every device holds the same elements as
/// before, in the same order in a dense row-major tile. Ends of one shape stay as they are. Errors: as validate;
/// mismatch (element types or numbers of elements differ); unsupported (more than 2^22 pieces).
[[nodiscard]] Result<Problem> unified(const Problem& problem);

/// A warning about a problem that may be misread; empty if it cannot be. Two shapes with the same extents in another
/// order are a reshape, which keeps elements in row-major order, and no transposition. Extents of 1 do not count.
[[nodiscard]] std::string note_on(const Problem& problem);

/// What is least: estimated time, bytes that the busiest device receives, or steps that communicate.
enum class Objective { time, bytes, steps };

[[nodiscard]] std::string_view name(Objective objective);    ///< time, bytes, steps
[[nodiscard]] std::string_view name(Vocabulary vocabulary);  ///< all, collectives
/// The objective of that name. Errors: syntax.
[[nodiscard]] Result<Objective> parse_objective(std::string_view text);
/// The vocabulary of that name. Errors: syntax.
[[nodiscard]] Result<Vocabulary> parse_vocabulary(std::string_view text);

/// What the planner is asked for beside the two ends.
struct Options {
    Objective objective = Objective::time;    ///< what is least
    Vocabulary vocabulary = Vocabulary::all;  ///< which steps are allowed
    Limits limits = {};                       ///< what a device may hold
    Machine machine = laptop();               ///< what time is estimated on
    /// Of the backend that is to run the plan (Backend::capabilities). When it is not known each step runs as a step.
    Capabilities capabilities = {};
    /// Tactics: these come first and run as steps, the rest is synthesized, the whole is judged.
    std::vector<Step> first_steps = {};
    /// Rules that are not asked, by their names (rules). A plan is no cheaper then, and search_complete is never said
    /// without `search`.
    std::vector<std::string> without = {};
    bool explain = false;  ///< also judge and list what need not be looked at once a plan is chosen, and what is over a
                           ///< limit; it changes no plan
    /// With explain: nanoseconds since any moment, to time the rules by; it changes no plan either.
    Index (*clock)() = nullptr;
};

}  // namespace reshard
