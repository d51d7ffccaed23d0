// A plan as `plan` and `explain` print it: a line a step, and what it comes to.
#pragma once

#include <string>

#include "report/page.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// The steps: what each changes, the layout after it, its tile, what a device receives, the estimated time. Below them
/// peak and floor, footprint, received and lower bound, estimate; and what is known of the plan. `machine`: of the
/// options under which it was made.
[[nodiscard]] std::string plan_table(const Synthesis& made, const Machine& machine, const Page& page);

}  // namespace reshard::cli
