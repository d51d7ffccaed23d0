// Global arrays whose values are known everywhere, and the tiles cut from them. Index arithmetic of its own: nothing
// here calls the tile functions, copies or simulation that are under test.
#pragma once

#include "reshard/execute.hpp"

namespace reshard::conformance {

/// How a tile lies in a buffer.
enum class Style { row_major, column_major, padded, column_padded, spaced, shifted };
inline constexpr std::array<Style, 6> all_styles = {Style::row_major,     Style::column_major, Style::padded,
                                                    Style::column_padded, Style::spaced,       Style::shifted};

/// Per dimension the indices that a device has, ascending.
using Indices = std::vector<std::vector<Index>>;

/// The tile of a device, from the definition: its position in the mesh's list, digits of that, ceil-div boundaries or
/// the pieces of its shard. Nothing for devices outside of the mesh.
std::optional<Indices> tile_by_arithmetic(const Layout& layout, Index device);

Storage storage_of(Style style, const Indices& tile);

/// A buffer in which everything outside of the tile holds a pattern.
struct Image {
    std::vector<std::byte> bytes;
    friend bool operator==(const Image&, const Image&) = default;
};

/// The image of what `device` holds in `layout` of the array number `salt`, when the array was distributed as `origin`.
/// Summands of `origin` that `layout` has not are added up. Where layout has more, an element stays where it was, on
/// the device with coordinate 0 among its replicas, and the others hold zero. On another mesh as many summands keep
/// their numbers; else all are added up, and summand 0 is the sum.
/// With a reduction the values are numbers that it combines exactly in every dtype; without, arbitrary bytes.
Image image_of(const Layout& layout, const Layout& origin, Index device, Style style, std::uint64_t salt,
               std::optional<Reduction> reduction);

/// The same buffer before anything was written.
Image blank_of(const Layout& layout, Index device, Style style);

/// The image with the pattern in the tile too: what is left to compare where the tile itself means nothing.
Image without_tile(Image image, const Layout& layout, Index device, Style style);

/// Empty when equal; else how many bytes differ, and where the first one does.
std::string difference(const Image& got, const Image& wanted);

}  // namespace reshard::conformance
