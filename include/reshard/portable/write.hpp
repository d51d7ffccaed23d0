// A tile program as text that a framework runs as it is.
#pragma once

#include "reshard/portable/program.hpp"

namespace reshard {

/// For whom a tile program is written.
enum class Framework { jax, stablehlo, torch };

/// Every framework, in order.
inline constexpr std::array<Framework, 3> all_frameworks = {Framework::jax, Framework::stablehlo, Framework::torch};

[[nodiscard]] std::string_view name(Framework framework);  ///< jax, stablehlo, torch
/// The framework of that name. Errors: syntax.
[[nodiscard]] Result<Framework> parse_framework(std::string_view text);

/// jax: a Python module with `mesh`, `source` and `target` (NamedSharding), `move` of one tile, and `reshard`, jitted,
/// of the array. Axes of which an end uses parts are several axes of its mesh. Unreduced ends have one leading
/// dimension more, in which the summands are stacked. stablehlo: a module whose `main` takes and gives the tile of one
/// replica; replica i is position i of the source mesh. torch: a Python module with `connect`, which makes the groups
/// once, and `move` of one rank's tile by functional collectives; rank i is device i. Errors: unsupported when the ends
/// list the devices in two orders (jax) or the members of a group stand in another order in each group (torch), when an
/// element type has no name there, and when no mesh has the ends' sub-axes.
[[nodiscard]] Result<std::string> write(const TileProgram& program, Framework framework);

}  // namespace reshard
