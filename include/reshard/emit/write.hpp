// A tile program as text that a framework runs as it is.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// For whom a tile program is written.
enum class Framework { jax, stablehlo, torch };

/// Every framework, in order.
inline constexpr std::array<Framework, 3> all_frameworks = {Framework::jax, Framework::stablehlo, Framework::torch};

[[nodiscard]] std::string_view name(Framework framework);  ///< jax, stablehlo, torch
/// The framework of that name. Errors: syntax.
[[nodiscard]] Result<Framework> parse_framework(std::string_view text);

/// The text of a program.
///
/// jax: a Python module with `mesh`, `source` and `target` (NamedSharding), `move` for one tile, and the jitted
/// `reshard` for the whole array. If an end uses a part of an axis, the mesh has several axes for it. The summands of
/// an unreduced end are stacked in a leading dimension.
///
/// stablehlo: a module whose `main` takes and returns the tile of one replica. Replica i is position i of the source's
/// mesh.
///
/// torch: a Python module with `connect`, which makes the groups once, and `move`, which runs functional collectives on
/// one rank's tile. Rank i is device i, and there are as many ranks as devices.
///
/// Errors: unsupported when the ends list the devices in two orders or no mesh has the ends' sub-axes (jax), and when
/// the members of a group stand in another order in each group (torch).
[[nodiscard]] Result<std::string> write(const TileProgram& program, Framework framework);

/// A plan as a Python module for PyTorch with the package spmd_types: `connect` makes the mesh, and `move` has one
/// typed collective a line. Each changes one mesh axis, so a step of several axes is several lines, which receive as
/// much.
///
/// Errors: unsupported if a step is an exchange, a permute, a view or a cast, if an all_to_all or an all_reduce changes
/// several axes together, for parts of axes, for cuts that do not divide, for reductions other than sum, and for two
/// meshes. `write` for torch says such a plan.
[[nodiscard]] Result<std::string> spmd_types_text(const Plan& plan);

/// Python source that defines `move(tile, axes)`, for a shard_map over any mesh: the device with index i along `axes`
/// runs as device i of the layouts. pre: the devices of source.mesh are 0, 1, ... in some order.
[[nodiscard]] std::string jax_function(const TileProgram& program);

}  // namespace reshard
