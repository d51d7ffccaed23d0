// One end of a row: its runs in the tile of the sender or of the receiver.
#pragma once

#include "reshard/model/rows.hpp"

namespace reshard {

/// The places of the runs of a row in a tile, in bytes.
struct RowEnd {
    Index offset = 0;
    Index stride = 0;
    Index reach = 0;  ///< one past the last byte, at most index_max
};

/// The sender's end for RowSide::send, else the receiver's.
[[nodiscard]] RowEnd end_of(const Row& row, RowSide side);

/// Errors: mismatch (a negative number, no runs or no bytes).
[[nodiscard]] Result<void> well_formed(const Row& row);

/// As end_within. `tile_bytes` is the size of the row's tile, if there is one.
[[nodiscard]] Result<RowEnd> end_in_tile(const Row& row, RowSide side, Index tiles, Index tile_bytes);

/// The end of a row in its tile. Each of `tiles` is a span of bytes.
/// Errors: mismatch (as well_formed; an array without a tile; a run outside its tile).
template <class Tiles>
[[nodiscard]] Result<RowEnd> end_within(const Tiles& tiles, const Row& row, RowSide side) {
    const bool known = row.array >= 0 && row.array < std::ssize(tiles);
    return end_in_tile(row, side, std::ssize(tiles),
                       known ? std::ssize(tiles[static_cast<std::size_t>(row.array)]) : 0);
}

}  // namespace reshard
