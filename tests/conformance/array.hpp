// Global arrays with values that every rank knows, and the tiles cut from them. This file has its own index arithmetic:
// it does not call the tile functions, copies or simulation under test.
#pragma once

#include "reshard/execute.hpp"

namespace reshard::conformance {

/// The storage of a tile in a buffer.
enum class Style { row_major, column_major, padded, column_padded, spaced, shifted };
inline constexpr std::array<Style, 6> all_styles = {Style::row_major,     Style::column_major, Style::padded,
                                                    Style::column_padded, Style::spaced,       Style::shifted};

/// The indices of a device in each dimension, ascending.
using Indices = std::vector<std::vector<Index>>;

/// The tile of a device by the definition: the position in the mesh's list, its digits, and ceil-div boundaries or the
/// pieces of its shard. nullopt for devices outside the mesh.
std::optional<Indices> tile_by_arithmetic(const Layout& layout, Index device);

Storage storage_of(Style style, const Indices& tile);

/// A buffer with a pattern everywhere outside the tile.
struct Image {
    std::vector<std::byte> bytes;
    friend bool operator==(const Image&, const Image&) = default;
};

/// The image of the tile of `device` in `layout`, for array number `salt`, which was distributed as `origin`.
/// Summands of `origin` that `layout` does not have are added up. If `layout` has more summands, an element stays on
/// the device with coordinate 0 among its replicas, and the others hold zero. On another mesh an equal number of
/// summands keep their numbers; otherwise all are added up, and summand 0 is the sum. With a reduction the values are
/// numbers that every dtype combines exactly; otherwise they are arbitrary bytes.
Image image_of(const Layout& layout, const Layout& origin, Index device, Style style, std::uint64_t salt,
               std::optional<Reduction> reduction);

/// The same buffer before any write.
Image blank_of(const Layout& layout, Index device, Style style);

/// The image with the pattern in the tile too, to compare the rest of the buffer if the tile does not matter.
Image without_tile(Image image, const Layout& layout, Index device, Style style);

/// Empty if the images are equal; otherwise the number of bytes that differ, and the place of the first.
std::string difference(const Image& got, const Image& wanted);

}  // namespace reshard::conformance
