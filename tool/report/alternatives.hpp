// What was considered beside a plan, and why it lost.
#pragma once

#include <string>

#include "reshard/synthesize.hpp"
#include "tool/console/look.hpp"

namespace reshard::cli {

/// Of a synthesis with Options::explain: what each candidate moves and holds, where it spends its time, and the rules
/// that were asked; with Options::clock how long they took.
[[nodiscard]] std::string alternatives_tables(const Synthesis& made, const Options& options, const Look& look);

}  // namespace reshard::cli
