// The cost of a list before it runs.
#pragma once

#include <span>
#include <string>

#include "report/page.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// The judge's verdict, as a table of buckets and two lines for the whole. pre: a name for each array.
[[nodiscard]] std::string list_table(const ListSynthesis& made, std::span<const std::string> names,
                                     const Machine& machine, const Page& page);

}  // namespace reshard::cli
