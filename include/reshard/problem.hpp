// A question to the planner: two layouts, what is best, what may be used, and the limits.
#pragma once

#include "reshard/cost.hpp"

namespace reshard {

struct Problem {
    Layout source;
    Layout target;
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// The same problem with ends of one shape: a reshape moves nothing by itself. Every device holds the same elements as
/// before, in the same order in a dense row-major tile. Ends of one shape stay as they are. Errors: as validate;
/// mismatch (element types or numbers of elements differ); unsupported (more than 2^22 pieces).
[[nodiscard]] Result<Problem> unified(const Problem& problem);

enum class Objective { time, bytes, steps };
enum class Vocabulary {
    all,          ///< with the universal exchange
    collectives,  ///< slice, all_gather, all_to_all, permute and the reductions only
};

[[nodiscard]] std::string_view name(Objective objective);
[[nodiscard]] std::string_view name(Vocabulary vocabulary);
[[nodiscard]] Result<Objective> parse_objective(std::string_view text);
[[nodiscard]] Result<Vocabulary> parse_vocabulary(std::string_view text);

struct Options {
    Objective objective = Objective::time;
    Vocabulary vocabulary = Vocabulary::all;
    Limits limits = {};
    Machine machine = laptop();
    std::vector<Step> first_steps = {};  ///< tactics: these come first, the rest is synthesized, the whole is judged
    bool explain = false;  ///< also judge and list what need not be looked at once a plan is chosen, and what is over a
                           ///< limit; it changes no plan
};

}  // namespace reshard
