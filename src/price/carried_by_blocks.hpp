// What the schedules of all ranks carry, block by block of the machine: no transfer is looked at by itself.
#pragma once

#include <optional>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// As traffic_of, whatever devices the meshes list; elements are those of the schedules, and so are messages where no
/// tile has several holders; else these are an estimate, as `pair` always is, which is no less than what goes.
/// nullopt where the network chooses among partners (a permute of replicas), where digits of a team and those of a
/// layout form no chain, and beyond 2^22 devices. pre: the step is typed, its schedules choose by this machine.
[[nodiscard]] std::optional<Traffic> carried_by_blocks(const Layout& before, const Step& step, const Move& move,
                                                       const Machine& machine);

}  // namespace reshard
