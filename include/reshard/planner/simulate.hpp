// The meaning of a plan: what every device holds after each step, element by element, with no communication, no
// schedule and no cleverness. Tests hold everything else against it.
#pragma once

#include <span>

#include "reshard/plan.hpp"

namespace reshard {

/// The values of each device's tile in row-major order, for devices 0 up to at least the largest of the mesh. A summand
/// of an avg is written as its share, already divided by the number of summands, so that shares add up to the value and
/// integers suffice. `Schedule::scale` is the factor between a summand and its share; all else is as for a sum.
using Tiles = std::vector<std::vector<std::int64_t>>;

/// Tiles of `array` (row-major, one value per element) in `layout`. Summands differ from each other and combine to the
/// array (wrapping 64-bit sums and products, max, min). Errors: mismatch when the array's size is not the layout's,
/// overflow when the tiles do not fit memory's index.
[[nodiscard]] Result<Tiles> distribute(const Layout& layout, std::span<const std::int64_t> array);

/// What the devices hold after one step. Each kind reads only where its definition lets it: a collective from its
/// group, a permute from one device, a slice from itself. Errors: step when not typed, or when an element has no such
/// holder.
[[nodiscard]] Result<Tiles> simulate(const Layout& before, const Step& step, const Tiles& tiles);

/// All steps of a plan.
[[nodiscard]] Result<Tiles> simulate(const Plan& plan, Tiles tiles);

/// True when `tiles` are a distribution of `array` in `layout`: replicas equal, summands combining to it.
[[nodiscard]] bool denotes(const Layout& layout, const Tiles& tiles, std::span<const std::int64_t> array);

}  // namespace reshard
