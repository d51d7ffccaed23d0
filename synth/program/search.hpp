// The best order that a budget finds.
#pragma once

#include "synth/program/exact.hpp"

namespace reshard::program {

/// Budgets in steps, so that the answer is the same on every machine.
struct Budget {
    Index rounds = 0;  ///< of improve
    Index states = 0;  ///< of exact
};

/// Why the search ended: the order ends at the lower bound; every order that could be better was visited; the budget.
enum class Ended { bound, exhausted, budget };

struct Answer {
    Found found;
    LowerBound bound;
    Ended ended = Ended::budget;
    Index rounds = 0;  ///< of improve, used
    Index states = 0;  ///< of exact, used
};

/// nullopt if no order that was tried fits one by one; `needed` then has, for each place, the least bytes of any of
/// them. `bound` replaces the bound of the program; it is no larger.
[[nodiscard]] std::optional<Answer> best_order(const Activities& program, const Budget& budget,
                                               std::vector<Index>* needed = nullptr, const LowerBound* bound = nullptr);

}  // namespace reshard::program
