// A plan as `plan` and `explain` print it: a line a step, and what it comes to.
#pragma once

#include <string>

#include "report/page.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// A line for each step: its change, the layout after it, its tile, the bytes that a device receives, the estimated
/// time. Totals follow: peak and floor, footprint, received and lower bound, estimate, and whether the plan is optimal.
/// `machine` is the machine of the options that made the plan.
[[nodiscard]] std::string plan_table(const Synthesis& made, const Machine& machine, const Page& page);

/// The same for the adjoint of a plan, with its own totals.
[[nodiscard]] std::string adjoint_table(const Judged<Plan>& back, const Machine& machine, const Page& page);

}  // namespace reshard::cli
