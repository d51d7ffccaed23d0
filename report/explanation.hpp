// A plan beside everything else that was considered, why each of those lost, and which rules were asked.
#pragma once

#include <string>

#include "report/page.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// A line about the move through nodes if it takes less time than the plan, which was made under these options; else
/// empty. A Redistributor with these options runs that move.
[[nodiscard]] std::string line_on_nodes(const Synthesis& made, const Options& asked);

/// As `explain` prints it, with the move through nodes if that takes less time than the plan; with a clock in the
/// options also the time that each rule took. pre: `made` was made under these options, with Options::explain.
[[nodiscard]] std::string explanation(const Synthesis& made, const Options& asked, const Page& page);

}  // namespace reshard::cli
