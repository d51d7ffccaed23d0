// Plans that number the devices anew on the way, so that digits may cross the axes of the mesh.
#pragma once

#include <optional>

#include "reshard/problem.hpp"

namespace reshard {

/// One permute brings tiles to a mesh with one axis for each dimension of the target. All-to-alls and gathers follow
/// there: ten shards of two axes (2 x 5) can also be five pairs. Slices come first. nullopt if the axes of the mesh
/// have the same digits, for sums or pieces, if sizes do not divide, and for more than `renumbered_devices_max`
/// devices, since the plan lists each device.
[[nodiscard]] std::optional<Plan> renumbered_to_target(const Problem& problem);

/// The same for the shards of the source. The permute out of its mesh comes at the end, before gathers.
[[nodiscard]] std::optional<Plan> renumbered_to_source(const Problem& problem);

inline constexpr Index renumbered_devices_max = 4096;

}  // namespace reshard
