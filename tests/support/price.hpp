// The cost of a plan, counted here and not by the planner.
#pragma once

#include <algorithm>

#include "reshard/synthesize.hpp"

namespace reshard::test {

/// Steps that move between devices.
[[nodiscard]] inline Index steps_that_move(const Plan& plan) {
    return std::ranges::count_if(plan.steps, [](const Step& step) { return !is_local(step.kind); });
}

/// The figure that the objective minimizes, for a Synthesis or an Alternative: picoseconds, bytes that the busiest
/// device receives, or steps that move.
template <class Made>
[[nodiscard]] Index price_of(const Made& made, Objective objective) {
    if (objective == Objective::time) return made.picoseconds;
    return objective == Objective::bytes ? made.verdict().received_bytes_max_device : steps_that_move(made.plan());
}

}  // namespace reshard::test
