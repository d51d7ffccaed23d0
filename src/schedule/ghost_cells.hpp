// The ghost cells of arrays with halos, and the elements that they are copies of. Cells are counted in the arrays
// (array_shape), so two ranks that know a layout name the same cells.
#pragma once

#include "reshard/halo/halo.hpp"

namespace reshard {

/// A box of ghost cells in the array of one device. They hold elements of the block of one owner.
struct GhostCells {
    Index holder = 0;     ///< the device whose array has them
    Index owner = 0;      ///< the device whose block has the elements; may be the holder
    Box cells;            ///< in the holder's array
    Box elements;         ///< in the owner's array, of the same shape
    std::size_t dim = 0;  ///< the first dimension in which they lie outside the holder's block
};

/// All ghost cells of elements of the device's block. If the layout replicates elements, only devices of its row hold
/// them, which fill their halos from it. The order is row-major in the holders' shards. One holder's ghost cells are
/// in the order of their wraps.
[[nodiscard]] std::vector<GhostCells> ghosts_of_block(const HaloLayout& layout, Index device);

/// All ghost cells in the device's array. The order is row-major in the owners' shards. One owner's ghost cells are in
/// the order of their wraps, so the k-th of an owner here is the k-th of this holder there.
[[nodiscard]] std::vector<GhostCells> ghosts_in_array(const HaloLayout& layout, Index device);

}  // namespace reshard
