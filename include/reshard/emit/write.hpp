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
/// jax: a Python module with `mesh`, `source` and `target` (NamedSharding), `move` of one tile, and `reshard`, jitted,
/// of the whole array. Axes of which an end uses parts are several axes of its mesh. The summands of an unreduced end
/// are stacked in a leading dimension.
///
/// stablehlo: a module whose `main` takes and gives the tile of one replica. Replica i is position i of the source's
/// mesh.
///
/// torch: a Python module with `connect`, which makes the groups once, and `move` of one rank's tile by functional
/// collectives. Rank i is device i, and there are as many ranks as devices.
///
/// Errors: unsupported when the ends list the devices in two orders or no mesh has the ends' sub-axes (jax), and when
/// the members of a group stand in another order in each group (torch).
[[nodiscard]] Result<std::string> write(const TileProgram& program, Framework framework);

}  // namespace reshard
