// A plan is a plain value: a source layout, typed steps, a target layout. Print it, parse it, compare it, store it.
#pragma once

#include "reshard/planner/network.hpp"
#include "reshard/planner/step.hpp"

namespace reshard {

/// How an array moves: each step's layout is the next one's source, the last one's the target.
struct Plan {
    Layout source;            ///< where the array is
    Layout target;            ///< where it is wanted
    std::vector<Step> steps;  ///< in order; none when both ends hold the same
    Network network = {};     ///< where replicas serve whom is nearest first; by default all devices are as near as any
    friend bool operator==(const Plan&, const Plan&) = default;
};

/// The layout before step `index`; `index == steps.size()` gives the layout at the end.
[[nodiscard]] const Layout& layout_before(const Plan& plan, std::size_t index);

/// One more than the largest device of any layout on the way: the number of ranks that are needed.
[[nodiscard]] Index world_size(const Plan& plan);

/// 64-bit hash of everything that decides what the ranks do: dtype, shape, devices, kinds, atoms, cuts. The names of
/// axes do not enter. Equal on every machine.
[[nodiscard]] std::uint64_t fingerprint(const Plan& plan);

}  // namespace reshard
