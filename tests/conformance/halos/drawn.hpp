// Random arrays with halos, and the oracle: each cell is looked up in the array as a whole, by arithmetic of its own.
#pragma once

#include <string>
#include <vector>

#include "support/random_bytes.hpp"

namespace reshard::conformance {

/// One dimension of a drawn array.
struct DrawnDim {
    Index extent = 0;
    std::vector<std::size_t> axes;  ///< of the mesh, major to minor
    std::vector<Index> shares;      ///< indices of each shard, in order
    Index block = 0;                ///< of a block-cyclic cut; 0: by shares
    bool stated = false;            ///< the text has the shares; otherwise ceil-div makes them
    Index before = 0;
    Index after = 0;
    bool periodic = false;
};

/// A drawn layout on a mesh of these axes, row-major.
struct DrawnLayout {
    std::vector<Index> axes;
    std::vector<DrawnDim> dims;
    std::vector<Index> devices = {};  ///< at each position of the mesh; empty: device i is at position i
};

[[nodiscard]] DrawnLayout draw_layout(test::Random& random, Index ranks);
/// Another cut of the same array on the same mesh, without halos.
[[nodiscard]] DrawnLayout draw_source(test::Random& random, const DrawnLayout& of);
/// The same array with halos that are not periodic, on a mesh of its own.
[[nodiscard]] DrawnLayout draw_source_elsewhere(test::Random& random, const DrawnLayout& of, Index ranks);
/// Puts the mesh on any of the ranks, in any order.
void draw_devices(test::Random& random, DrawnLayout& layout, Index ranks);

[[nodiscard]] std::string mesh_text(const DrawnLayout& layout);
[[nodiscard]] std::string text_of(const DrawnLayout& layout, const std::string& dtype);
[[nodiscard]] Index devices_of(const DrawnLayout& layout);

/// The indices of one dimension that a device owns, ascending.
[[nodiscard]] std::vector<Index> owned_indices(const DrawnLayout& layout, std::size_t dim, Index device);
/// For each cell of one dimension of the device's array, the index that it holds, or -1 beyond an open border. Empty
/// for a device that owns nothing.
[[nodiscard]] std::vector<Index> cells_of(const DrawnLayout& layout, std::size_t dim, Index device);

/// Row-major numbers of the elements at all combinations of these indices; -1 if one index is -1.
[[nodiscard]] std::vector<Index> numbers_of(const DrawnLayout& layout, const std::vector<std::vector<Index>>& sides);
/// The element in each cell of the device's array, row-major; -1 beyond an open border.
[[nodiscard]] std::vector<Index> array_of(const DrawnLayout& layout, Index device);
/// True for the cells of the device's block, in the order of array_of.
[[nodiscard]] std::vector<bool> block_of(const DrawnLayout& layout, Index device);
/// True if the devices differ only in axes that cut a dimension. They fill their halos from each other.
[[nodiscard]] bool in_one_row(const DrawnLayout& layout, Index one, Index other);
/// The elements of the device's tile, row-major.
[[nodiscard]] std::vector<Index> tile_of(const DrawnLayout& layout, Index device);

}  // namespace reshard::conformance
