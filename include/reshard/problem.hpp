// A question to the planner: two layouts, an objective, a vocabulary, and limits.
#pragma once

#include <string>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// One array and its target layout.
struct Problem {
    Layout source;  ///< the layout it has
    Layout target;  ///< the layout it shall have
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// Returns the same problem with ends of one shape. A reshape moves nothing: every device holds the same elements, in
/// the same order of a dense row-major tile. Ends of one shape stay as they are. Each end keeps its element type.
/// Errors: as validate; mismatch (numbers of elements differ); unsupported (more than 2^22 pieces).
[[nodiscard]] Result<Problem> to_common_shape(const Problem& problem);

/// Returns a warning about a problem that looks like a transposition, otherwise an empty text. Two shapes with the same
/// extents in another order are a reshape, which keeps elements in row-major order. Extents of 1 do not count.
[[nodiscard]] std::string note_on(const Problem& problem);

/// The quantity to minimize: the estimated time, the bytes that the busiest device receives, or the communicating
/// steps.
enum class Objective { time, bytes, steps };

[[nodiscard]] std::string_view name(Objective objective);    ///< time, bytes, steps
[[nodiscard]] std::string_view name(Vocabulary vocabulary);  ///< all, collectives
/// The objective of that name. Errors: syntax.
[[nodiscard]] Result<Objective> parse_objective(std::string_view text);
/// The vocabulary of that name. Errors: syntax.
[[nodiscard]] Result<Vocabulary> parse_vocabulary(std::string_view text);

/// Everything in a question except the two ends.
struct Options {
    Objective objective = Objective::time;    ///< the quantity to minimize
    Vocabulary vocabulary = Vocabulary::all;  ///< the steps that a plan may have
    Limits limits = {};                       ///< the bytes that a device may hold
    Machine machine = laptop();               ///< the machine of the estimated time
    /// Those of the backend that will run the plan (Backend::capabilities). Default: every step runs separately.
    Capabilities capabilities = {};
    /// Tactics: these steps come first and run separately. The planner finds the rest, and the judge checks the whole.
    std::vector<Step> first_steps = {};
    /// Names of rules that the planner skips (rules). A plan is never cheaper for it, and search_complete is never true
    /// if `search` is among them.
    std::vector<std::string> disabled_rules = {};
    /// Source and target may differ in element type; the plan then has a cast. Floats become floats, rounded once to
    /// nearest even. Integers become a type that holds all of their values. Sums are reduced in the wider type.
    bool cast = false;
    bool explain = false;  ///< also report candidates that were skipped or are over a limit; changes no plan
    /// With explain: nanoseconds since any moment, to time the rules. Changes no plan.
    Index (*clock)() = nullptr;
};

}  // namespace reshard
