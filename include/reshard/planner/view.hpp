// A reshape moves nothing by itself: both shapes are views of the same elements in row-major order. A move between two
// shapes is a move between two layouts of one view.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard {

/// `source` and `target` as layouts of one shape. Dimensions are split until both shapes agree. If an end is cut across
/// a split, the dimensions are merged instead and the cut becomes pieces. Every device holds the same elements as
/// before, in the same order in a dense row-major tile. Ends of one shape are returned unchanged.
/// Errors: mismatch (element types or numbers of elements differ), unsupported (more than 2^22 pieces).
[[nodiscard]] Result<std::pair<Layout, Layout>> in_common_view(const Layout& source, const Layout& target);

/// The layout with each dimension as several: `parts` lists their extents, which multiply to the dimension. Every
/// device holds the same elements in the same order. nullopt if the shards of a dimension are no products of shards of
/// its parts. pre: one list for each dimension.
[[nodiscard]] std::optional<Layout> in_parts(const Layout& layout, std::span<const std::vector<Index>> parts);

/// The layout with its elements, in row-major order, in another shape. Dimensions are split and merged. Every device
/// holds the same elements in the same order. nullopt if a cut is no cut of the new dimensions, or if cut dimensions
/// and new ones have no common factors. pre: as many elements in `shape`.
[[nodiscard]] std::optional<Layout> in_shape(const Layout& layout, std::span<const Index> shape);

/// The layout with each dimension that is cut in pieces as its digits: the block-cyclic `65536@x/256` is
/// `[32,8@x,256]`. Every device holds the same elements in the same order. nullopt if pieces differ in length, or if
/// the shard of a piece is no sum over digits of its index. Dimensions without pieces stay.
[[nodiscard]] std::optional<Layout> in_digits(const Layout& layout);

/// The layout of the transposed array: dimension i is dimension order[i] of `layout`. Every device holds the same
/// elements, so nothing moves. An empty order leaves the layout as it is. Errors: mismatch (the order does not name
/// each dimension once).
[[nodiscard]] Result<Layout> permuted(const Layout& layout, std::span<const Index> order);
/// Where the elements of a permuted tile lie, if `storage` says where those of the tile lie. An empty order leaves the
/// storage as it is. pre: permuted(layout, order) for the layout of the tile.
[[nodiscard]] Storage permuted(const Storage& storage, std::span<const Index> order);

}  // namespace reshard
