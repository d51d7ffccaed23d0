// Tiles of layouts as boxes in files.
#pragma once

#include <optional>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// Of each dimension of a layout that of the tensor; none where rules have put in a dimension of 1 that the tensor does
/// not have, as {e}@axes does.
[[nodiscard]] std::vector<std::optional<std::size_t>> real_dims(const Layout& layout, std::span<const Index> shape);

/// What a rank has of a tensor, in the tensor's own dimensions; an empty side where it has nothing.
[[nodiscard]] Tile real_tile(const Layout& layout, std::span<const Index> shape, Index rank);

/// The boxes of a tile that lies dense and row-major from `offset` on.
[[nodiscard]] std::vector<StoredBox> boxes_in_file(const Tile& tile, Index file, Index offset, Index element_bytes);

}  // namespace reshard::files
