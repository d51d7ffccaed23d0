// What each rank gets of one tensor of a model, by rules.
#pragma once

#include <string>
#include <string_view>

#include "report/page.hpp"
#include "reshard/model/rules.hpp"

namespace reshard::cli {

/// A line for the target tensor `name`, and a table with a line for each rank: its tile, and the source elements in it.
/// Errors: mismatch (the rules make no such tensor); unsupported (more than 65,536 ranks).
[[nodiscard]] Result<std::string> rank_table(const CheckpointMapping& model, std::string_view name, const Page& page);

}  // namespace reshard::cli
