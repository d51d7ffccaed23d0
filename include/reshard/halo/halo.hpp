// Layouts with halos: each device holds its block of an array and also the cells around it.
#pragma once

#include <string>
#include <string_view>

#include "reshard/layout.hpp"

namespace reshard {

/// The cells of one dimension that a device holds beside its block. Other devices own them.
struct Halo {
    Index before = 0;       ///< cells before the block's first index
    Index after = 0;        ///< cells after its last index
    bool periodic = false;  ///< index -1 is the last index of the array, and index `extent` is the first one
    friend bool operator==(const Halo&, const Halo&) = default;
};

/// A layout whose tiles overlap. `owned` says which device owns an element, and may replicate elements. Each device
/// keeps its block and the halo around it in one array (array_shape). A cell is an index of Z in each dimension. If a
/// dimension is periodic, cell c holds element c modulo the extent, so one element may have several cells on a device.
/// If it is not periodic, cells outside the array hold no element. They are memory of the caller's, for boundary
/// values. A device that owns nothing holds nothing. Invariants (validate): `owned` is valid and nothing in it is
/// unreduced. It has one halo per dimension, of at least 0 cells. A dimension with a halo gives each shard one block.
/// Every product fits 64 bits.
struct HaloLayout {
    Layout owned;             ///< the owners of the elements
    std::vector<Halo> halos;  ///< one per dimension
    friend bool operator==(const HaloLayout&, const HaloLayout&) = default;
};

/// A periodic halo has at most this many cells per index of its dimension.
inline constexpr Index periodic_halo_max = 8;

/// Fails unless the invariants of HaloLayout hold. Errors: as validate(Layout); layout (a halo is negative, or
/// there is not one for each dimension); overflow; unsupported (summands, a block-cyclic dimension with a halo, a
/// periodic halo of more than periodic_halo_max times the extent).
[[nodiscard]] Result<void> validate(const HaloLayout& layout);

/// The shape of the device's array, in elements: its block and both halos. All 0 if it owns nothing.
[[nodiscard]] std::vector<Index> array_shape(const HaloLayout& layout, Index device);
/// The place of the device's block in its array: array[core] is the tile of `owned`. Empty if it owns nothing.
[[nodiscard]] Box core_of(const HaloLayout& layout, Index device);
/// The place of all cells that hold elements in the device's array. The rest is beyond an open border.
[[nodiscard]] Box filled_of(const HaloLayout& layout, Index device);

/// The cells that hold elements on the device, in global indices; periodic cells are not wrapped. Nothing outside the
/// mesh.
[[nodiscard]] Tile held_cells(const HaloLayout& layout, Index device);
/// The held cells with only one cell for each element. They include the block.
[[nodiscard]] Tile distinct_cells(const HaloLayout& layout, Index device);

/// Elements that a fill brings to the device from other devices: all that it holds and does not own, each once. No
/// protocol can bring fewer.
[[nodiscard]] Index received_elements(const HaloLayout& layout, Index device);

/// Parses the text of a layout (parse_layout) with halos: a dimension ends with "~" width ["%"]; width := cells | "("
/// before "," after ")". "%" makes it periodic. Example: "f64[256@x~1%,64@y~(2,0)]".
[[nodiscard]] Result<HaloLayout> parse_halo_layout(const Mesh& mesh, std::string_view text);
/// The text that parse_halo_layout reads.
[[nodiscard]] std::string format(const HaloLayout& layout);

}  // namespace reshard
