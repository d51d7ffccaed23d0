// The memory order of a tile's elements while a program runs: digits of its local indices, most major first.
#pragma once

#include <optional>
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

/// Each digit of a tile once: a dense array of the sizes, in this order. Equal orders are equal when merged.
using Order = std::vector<Digit>;

/// Drops digits of size 1 and joins neighbours that continue each other.
[[nodiscard]] Order merged(Order order);
/// A row-major tile, merged.
[[nodiscard]] Order row_major(const std::vector<Index>& extents);
[[nodiscard]] std::vector<Index> sizes_of(const Order& order);
[[nodiscard]] Index elements_of(const Order& order);
[[nodiscard]] Index elements_of(const std::vector<Index>& extents);

/// Cuts the digit that `border` lies within: below it are indices of so many. False when the border divides no digit.
[[nodiscard]] bool cut(Order& order, std::size_t dim, Index border);
/// Cuts at both ends of a digit, which may be of several neighbours then.
[[nodiscard]] bool cut(Order& order, const Digit& digit);
/// The same order, cut so that each of these digits is one of its own; nullopt when one lies in several places.
[[nodiscard]] std::optional<Order> cut_out(const Order& order, const Order& digits);

/// Removes the digits in `taken` and merges the rest in the order it has. A dimension whose digits they do not divide
/// stays whole, at the place of its most minor digit. pre: in each dimension the taken digits are the most major.
[[nodiscard]] Order without(const Order& order, const Order& taken);

/// One transpose of a dense array.
struct Transposition {
    std::vector<Index> sizes;              ///< shape before; as few dimensions as tell it
    std::vector<std::size_t> permutation;  ///< dimension i after is dimension permutation[i] before
    [[nodiscard]] bool moves() const;      ///< some element changes its place
};
/// From one order to another of the same tile; nullopt if their cuts of a dimension have no common digits.
[[nodiscard]] std::optional<Transposition> transposition(const Order& from, const Order& to);

}  // namespace reshard
