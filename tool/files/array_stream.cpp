#include "tool/files/array_stream.hpp"

#include <algorithm>

#include "src/copy/copy.hpp"
#include "tool/files/box_runs.hpp"

namespace reshard::cli {
namespace {

constexpr Index window_bytes = Index{1} << 20;

// What a rank writes of the array, in the order of the file.
Tile written_tile(const Layout& layout, Index rank, bool fortran_order) {
    if (!writes_array(layout, rank)) return nothing(layout.dims.size());
    Tile held = tile(layout, rank);
    return fortran_order ? reversed(std::move(held)) : held;
}

Slot dense(const Tile& tile) {
    Slot slot;
    slot.tile = tile;
    slot.storage = row_major(tile);
    return slot;
}

// Copies what two tiles have in common between the first, dense, and a string where it lies box after box.
void copy_common(const Tile& tile, const Tile& other, Index size, const std::byte* from, std::byte* to, bool pack) {
    const Slot slot = dense(tile);
    for (const Box& box : boxes_of(intersect(tile, other))) {
        const Region there = region_of(slot, box, size);
        const Region packed = packed_region(box, size);
        if (pack) {
            BoxCopy(there, packed).run(from, to);
            to += bytes_of(packed);
        } else {
            BoxCopy(packed, there).run(from, to);
            from += bytes_of(packed);
        }
    }
}

}  // namespace

bool writes_array(const Layout& layout, Index rank) {
    const auto position = position_of(layout.mesh, rank);
    return position && value_of(complement(used_atoms(layout), device_count(layout)), *position) == 0;
}

Result<void> stream_array(Rank& rank, const File* stream, const Layout& layout, bool fortran_order,
                          std::span<const std::byte> tile) {
    const Index size = size_of(layout.dtype);
    Box whole;
    for (const Index extent : shape(layout)) whole.push_back({0, extent});
    if (fortran_order) std::reverse(whole.begin(), whole.end());
    std::vector<Tile> tiles;
    for (Index r = 0; r < rank.size(); ++r) tiles.push_back(written_tile(layout, r, fortran_order));
    const Tile& mine = tiles[static_cast<std::size_t>(rank.index())];
    std::vector<std::byte> bytes;
    return for_each_piece(whole, window_bytes / size, [&](const Box& piece, Index) -> Result<void> {
        const Tile window = as_tile(piece);
        std::string part(static_cast<std::size_t>(count(intersect(mine, window)) * size), '\0');
        copy_common(mine, window, size, tile.data(), std::as_writable_bytes(std::span(part)).data(), true);
        const std::vector<std::string> parts = rank.share(std::move(part));
        Result<void> written;
        if (stream != nullptr) {
            bytes.resize(static_cast<std::size_t>(count(piece) * size));
            for (std::size_t r = 0; r < tiles.size(); ++r)
                copy_common(window, tiles[r], size, std::as_bytes(std::span(parts[r])).data(), bytes.data(), false);
            written = stream->append(bytes);
        }
        return agree(rank, written);
    });
}

}  // namespace reshard::cli
