// The traffic of all ranks' schedules, block by block of the machine, without looking at single transfers.
#pragma once

#include <optional>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// As traffic_of, whatever devices the meshes list. Elements are exact. Messages are exact if each tile has one holder,
/// and otherwise an upper estimate, as `pair` always is.
/// nullopt if the network chooses among partners (a permute of replicas), if digits of a team and of a layout form no
/// chain, and beyond 2^22 devices. pre: the step is typed, and its schedules choose by this machine.
[[nodiscard]] std::optional<Traffic> carried_by_blocks(const Layout& before, const Step& step, const Move& move,
                                                       const Machine& machine);

}  // namespace reshard
