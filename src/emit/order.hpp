// The memory order of the elements of a tile while a program runs: digits of its local indices, most major first.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// A digit of the local index of one dimension: index / stride mod size.
struct Digit {
    std::size_t dim = 0;  ///< of the tile
    Index size = 1;       ///< values
    Index stride = 1;     ///< product of the digits below it in its dimension
    friend auto operator<=>(const Digit&, const Digit&) = default;
};

/// Lists each digit of a tile once. The memory is a dense array of the sizes, in this order. Equal orders are equal
/// after merging.
using Order = std::vector<Digit>;

/// Drops digits of size 1 and merges neighbours that continue each other.
[[nodiscard]] Order merged(Order order);
/// A row-major tile, merged.
[[nodiscard]] Order row_major(const std::vector<Index>& extents);
/// The order in memory of a row-major tile whose dimensions are seen in another order: dimension i of `extents` is
/// dimension permute[i] of the tile. An empty `permute` leaves the order.
[[nodiscard]] Order transposed(const std::vector<Index>& extents, std::span<const Index> permute);
/// The same memory as digits of another shape, whose row-major order has the elements in the same order. nullopt if a
/// digit would be cut at a place that does not divide it.
[[nodiscard]] std::optional<Order> reshaped(const Order& order, const std::vector<Index>& from,
                                            const std::vector<Index>& to);
[[nodiscard]] std::vector<Index> sizes_of(const Order& order);
[[nodiscard]] Index elements_of(const Order& order);
[[nodiscard]] Index elements_of(const std::vector<Index>& extents);

/// Cuts the digit that contains `border`, so that one part counts the indices below it. Returns false if the border
/// divides no digit.
[[nodiscard]] bool cut(Order& order, std::size_t dim, Index border);
/// Cuts at both ends of a digit, which may then span several neighbours.
[[nodiscard]] bool cut(Order& order, const Digit& digit);
/// The same order, cut so that each of these digits stands alone; nullopt if a digit lies in several places.
[[nodiscard]] std::optional<Order> cut_out(const Order& order, const Order& digits);

/// The rest of a tile after these digits are removed, in the same order, merged. If the digits do not divide a
/// dimension, the dimension stays whole, at the place of its most minor digit. pre: the digits are the most major of
/// each dimension.
[[nodiscard]] Order without(const Order& order, const Order& taken);

/// One transpose of a dense array.
struct Transposition {
    std::vector<Index> sizes;              ///< shape before, in as few dimensions as possible
    std::vector<std::size_t> permutation;  ///< dimension i after is dimension permutation[i] before
    [[nodiscard]] bool moves() const;      ///< true if some element moves
};
/// The transpose from one order to another of the same tile; nullopt if the orders have no common digits.
[[nodiscard]] std::optional<Transposition> transposition(const Order& from, const Order& to);

}  // namespace reshard
