// Plans that number the devices anew on the way, so that digits may cross the axes of the mesh.
#pragma once

#include <optional>

#include "reshard/problem.hpp"

namespace reshard {

/// Tiles are permuted once to a mesh in which all shards of each dimension of the target are one axis, and go on by
/// all-to-alls and gathers there: ten shards of two axes (2 x 5) can be five pairs, too. Slices come first. Nullopt
/// where the axes of the mesh have these digits as well, with sums or pieces, where sizes do not divide, and for more
/// than `renumbered_devices_max` devices, each of which is listed.
[[nodiscard]] std::optional<Plan> renumbered_to_target(const Problem& problem);

/// The same for the shards of the source: its mesh is left by a permute at the end, before gathers.
[[nodiscard]] std::optional<Plan> renumbered_to_source(const Problem& problem);

inline constexpr Index renumbered_devices_max = 4096;

}  // namespace reshard
