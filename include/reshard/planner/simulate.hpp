// The meaning of a plan: what every device holds after each step, element by element, with no communication, no
// schedule and no cleverness. Tests compare everything else with it.
#pragma once

#include <span>

#include "reshard/plan.hpp"

namespace reshard {

/// The values of each device's tile in row-major order, for devices 0 up to at least the largest of the mesh. A summand
/// of an avg is stored as its share: already divided by the number of summands. Shares add up to the value, so integers
/// suffice. `Schedule::scale` is the factor between a summand and its share. Otherwise an avg is like a sum.
using Tiles = std::vector<std::vector<std::int64_t>>;

/// The tiles of `array` (row-major, one value per element) in `layout`. Summands differ from each other and combine to
/// the array (wrapping 64-bit sums and products, max, min). Errors: mismatch (the array's size is not the layout's),
/// overflow (the tiles do not fit memory's index).
[[nodiscard]] Result<Tiles> distribute(const Layout& layout, std::span<const std::int64_t> array);

/// The tiles after one step. Each kind reads only where its definition allows it: a collective from its group, a
/// permute from one device, a slice from its own device. Errors: step (it is not typed, or no device that it may read
/// from holds an element).
[[nodiscard]] Result<Tiles> simulate(const Layout& before, const Step& step, const Tiles& tiles);

/// The tiles after all steps of a plan.
[[nodiscard]] Result<Tiles> simulate(const Plan& plan, Tiles tiles);

/// True when `tiles` are a distribution of `array` in `layout`: replicas are equal, and summands combine to the array.
[[nodiscard]] bool denotes(const Layout& layout, const Tiles& tiles, std::span<const std::int64_t> array);

}  // namespace reshard
