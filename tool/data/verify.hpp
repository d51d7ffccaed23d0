// Compares target tiles with their expected elements.
#pragma once

#include "reshard/layout.hpp"
#include "tool/console/terminal.hpp"
#include "tool/data/values.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

struct Verified {
    Index wrong = 0;
    Index of = 0;  ///< elements that were compared, over all devices
};

/// Returns the tile of a device in the order of its storage. Ranks beyond the mesh have an empty tile.
[[nodiscard]] Tile storage_tile(const Layout& layout, Index rank, bool fortran_order);

/// Fills the source tile of this rank. Errors: io.
[[nodiscard]] Result<void> fill(Values& values, const Layout& source, Index rank, bool fortran_order,
                                std::span<std::byte> tile, Progress& progress);

/// Collective: compares every element of every target tile. If the target has unreduced axes, it compares the
/// combination of the devices that differ only there. Sums are compared through a random weight for each element, and
/// then all elements of a wrong tile count as wrong.
[[nodiscard]] Result<Verified> verify(Rank& rank, Values& values, const Layout& target, bool fortran_order,
                                      std::span<const std::byte> tile, Progress& progress);

}  // namespace reshard::cli
