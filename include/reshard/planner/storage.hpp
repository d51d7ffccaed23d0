// The storage of a tile in local memory.
#pragma once

#include <vector>

#include "reshard/planner/tile.hpp"

namespace reshard {

/// The storage of a tile in local memory: element (i_0, ...) lies at offset + sum i_k * strides[k], in elements. i_k
/// counts the tile's own indices, so the intervals of a side lie one after another.
struct Storage {
    Index offset = 0;            ///< elements from the start of the buffer
    std::vector<Index> strides;  ///< elements, one per dimension
    friend bool operator==(const Storage&, const Storage&) = default;
};

[[nodiscard]] Storage row_major(const Tile& tile);     ///< dense, last dimension contiguous
[[nodiscard]] Storage column_major(const Tile& tile);  ///< dense, first dimension contiguous
/// The storage of a view, from its first element on: of a std::mdspan, or any type with rank() and stride(i) in
/// elements.
template <class View>
[[nodiscard]] Storage storage_of(const View& view) {
    Storage storage;
    for (std::size_t k = 0; k < view.rank(); ++k) storage.strides.push_back(static_cast<Index>(view.stride(k)));
    return storage;
}
/// Elements from the start of the buffer to one past the last element of the tile; 0 for an empty tile.
/// Errors: overflow (it does not fit 64 bits), mismatch (a wrong number of strides, or a negative one).
[[nodiscard]] Result<Index> extent_of(const Storage& storage, const Tile& tile);
/// Elements from the start of the buffer to the first of `box`. pre: contains(tile, box).
[[nodiscard]] Index offset_of(const Storage& storage, const Tile& tile, const Box& box);

/// The memory that a run reads and writes: the caller's buffers, and what a backend stages.
enum class BufferId { source, target, workspace, staging };
/// The number of BufferIds.
inline constexpr std::size_t buffer_count = 4;

/// A box in memory. Its storage counts indices from the box's first.
struct PlacedBox {
    Box box;          ///< which elements
    Storage storage;  ///< where they lie
};

/// A tile in memory, or several boxes that each have a place of their own.
struct Slot {
    BufferId buffer = BufferId::source;  ///< which buffer
    Index offset_bytes = 0;              ///< from the start of the buffer
    Tile tile;                           ///< which elements
    Storage storage;                     ///< where they lie, counted from the offset; not used if there are `boxes`
    /// If not empty, the elements lie in these boxes. Box i has index i alone in dimension `numbered_by` of the tile.
    std::vector<PlacedBox> boxes = {};
    std::size_t numbered_by = 0;  ///< the dimension that counts the boxes
};

}  // namespace reshard
