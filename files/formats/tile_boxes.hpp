// Tiles of layouts as boxes in files.
#pragma once

#include <optional>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// Returns the tensor's dimension for each dimension of a layout. Empty for a dimension of 1 that only the rules put
/// in, as {e}@axes does.
[[nodiscard]] std::vector<std::optional<std::size_t>> real_dims(const Layout& layout, std::span<const Index> shape);

/// Returns the shape whose indices real_tile has: the tensor's own, or its number of elements if the layout flattens it.
[[nodiscard]] std::vector<Index> real_shape(const Layout& layout, std::span<const Index> shape);

/// Returns a rank's tile in the tensor's own dimensions, or in one dimension if the layout flattens the tensor. It has
/// an empty side if the rank holds nothing.
[[nodiscard]] Tile real_tile(const Layout& layout, std::span<const Index> shape, Index rank);

/// Returns the boxes of a tile that is dense and row-major and begins at `offset`.
[[nodiscard]] std::vector<StoredBox> boxes_in_file(const Tile& tile, Index file, Index offset, Index element_bytes);

}  // namespace reshard::files
