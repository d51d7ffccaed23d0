// Orders that are built, not searched for.
#pragma once

#include <optional>
#include <span>

#include "synth/program/banker.hpp"
#include "synth/program/lower_bound.hpp"

namespace reshard::program {

/// Starts whatever is ready, the highest priority first, each time something ends. If a place has a limit, the banker
/// holds back what would leave the rest without an order. pre: fits(program, fallback).
[[nodiscard]] Order list_order(const Activities& program, std::span<const Index> priority, const Order& fallback,
                               Margin margin = 0);

/// An order near `wanted` that fits one by one: always the first activity that is ready and has room. nullopt if the
/// rest then has no room.
[[nodiscard]] std::optional<Order> squeezed(const Activities& program, const Order& wanted);

/// An order near `wanted` that fits one by one: always the first activity that is ready and leaves the rest an order.
/// pre: fits(program, fallback).
[[nodiscard]] Order repaired(const Activities& program, const Order& wanted, const Order& fallback);

/// As written, with each move just before its first user.
[[nodiscard]] Order late_moves(const Activities& program);

/// Always the ready activity that raises the held bytes least, then the one with the longest tail.
[[nodiscard]] Order lean_order(const Activities& program, const Paths& paths);

}  // namespace reshard::program
