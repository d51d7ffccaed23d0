// A plan as `plan` and `explain` print it: a line a step, and what it comes to.
#pragma once

#include <string>

#include "tool/request/request.hpp"

namespace reshard::cli {

/// The steps: what each changes, the layout after it, its tile, what a device receives, the estimated time.
[[nodiscard]] std::string plan_table(const Request& asked, const Synthesis& made);

/// Peak and floor, footprint, received and lower bound, estimate; and what is known of the plan.
[[nodiscard]] std::string plan_summary(const Request& asked, const Synthesis& made);

}  // namespace reshard::cli
