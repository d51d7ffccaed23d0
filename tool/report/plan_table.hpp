// A plan as `plan` and `explain` print it: a line a step, and what it comes to. The C interface gives the same texts,
// so nothing here knows a terminal.
#pragma once

#include <string>

#include "reshard/synthesize.hpp"
#include "tool/console/look.hpp"

namespace reshard::cli {

/// The steps: what each changes, the layout after it, its tile, what a device receives, the estimated time.
[[nodiscard]] std::string plan_table(const Synthesis& made, const Machine& machine, const Look& look);

/// Peak and floor, footprint, received and lower bound, estimate; and what is known of the plan.
[[nodiscard]] std::string plan_summary(const Synthesis& made, const Machine& machine, const Look& look);

}  // namespace reshard::cli
