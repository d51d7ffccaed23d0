// The rule `search`: the shortest path over typed steps, first in fine digits of the mesh, then in coarser ones.
#pragma once

#include "synth/rule_table.hpp"

namespace reshard {

/// A plan of one step goes by the name of the rule for such a step: `direct_exchange` or `one_step`.
[[nodiscard]] constexpr std::string_view name_of_step(StepKind kind) {
    return kind == StepKind::exchange ? "direct_exchange" : "one_step";
}

/// Proposes the best plan of each space, and reports in `asked.searched` how much of the space it visited.
void search_digits(Inquiry& asked);

}  // namespace reshard
