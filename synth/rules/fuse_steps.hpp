// One rule instead of many rewrites: along the layouts of a plan, take the cheapest typed steps that skip some of them.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// The cheapest plan through a subsequence of the layouts of `plan` that keeps both ends, each step the cheapest kind
/// that the judge types. Fuses slices, gathers and all-to-alls, absorbs permutes into their neighbours, and turns
/// reduce_scatter + all_gather into all_reduce, all because the wider step is typed and costs no more.
/// Never dearer than `plan` under the objective. Considers runs of at most 12 steps.
[[nodiscard]] Plan shortcut(Plan plan, const Options& options);

/// The price of one step under an objective, compared in order.
struct StepCost {
    Index first = 0;
    Index second = 0;
    Index third = 0;
    friend auto operator<=>(const StepCost&, const StepCost&) = default;
};
[[nodiscard]] StepCost operator+(const StepCost& a, const StepCost& b);
[[nodiscard]] StepCost price_of(const Layout& before, const Step& step, const Move& move, const Options& options);

/// True when the vocabulary has this kind of step.
[[nodiscard]] constexpr bool allows(Vocabulary vocabulary, StepKind kind) {
    return vocabulary == Vocabulary::all || kind != StepKind::exchange;
}

}  // namespace reshard
