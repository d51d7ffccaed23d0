// An exchange between owners and wanted cells. A layout says who owns an element. A layout with halos says which cells
// a device wants. The two need not be cut in the same way.
#pragma once

#include <functional>
#include <span>

#include "reshard/halo/halo.hpp"
#include "reshard/planner/schedule.hpp"
#include "src/schedule/owned_boxes.hpp"

namespace reshard {

/// A HaloLayout that refers to its parts: the rounds of a fill share one layout and have their own halos.
struct HaloView {
    const Layout& owned;
    std::span<const Halo> halos;  ///< one per dimension
    HaloView(const Layout& layout, std::span<const Halo> list) : owned(layout), halos(list) {}
    HaloView(const HaloLayout& layout) : owned(layout.owned), halos(layout.halos) {}
};

/// In each dimension, how many times the extent a cell lies above its element: -1, 0 or 1 for all distinct cells.
using Wrap = std::vector<Index>;

/// The wraps of the rank's receives and sends, in row-major order, which is the same on all ranks. Most ranks have one:
/// no wrap.
[[nodiscard]] std::vector<Wrap> wraps_of(const Layout& owners, const HaloView& wanted, Index rank);

/// The tile moved up by the wrap: element i becomes cell i + wrap * extent.
[[nodiscard]] Tile moved(Tile tile, const Layout& layout, const Wrap& wrap);

/// Visits one transfer. The box is in cells, and is valid during the call only.
using TransferVisit = std::function<void(Index peer, const Box& box)>;

/// Visits the rank's receives of all distinct cells with this wrap, each from an owner. Copies of elements that the
/// rank owns have peer == rank. Among several owners, the rank takes the one whose place in the mesh differs from its
/// own only in the digits that cut `owners`. So it takes itself if it is one. The meshes may have different devices.
/// pre: one shape; `owners` has no summands.
void each_wanted_receive(const Layout& owners, const HaloView& wanted, Index rank, const Wrap& wrap,
                         const TransferVisit& visit);

/// Visits the rank's sends to others: the other side of each_wanted_receive, in the same order for each pair of ranks.
void each_wanted_send(const Layout& owners, const HaloView& wanted, Index rank, const Wrap& wrap,
                      const TransferVisit& visit);

/// The fill of halos in one round, from owners of the same array. pre: as each_wanted_receive. Errors: unsupported
/// (more than certified_members_max devices).
[[nodiscard]] Result<OwnedBoxes> owned_boxes(const Layout& owners, const HaloLayout& wanted);

}  // namespace reshard
