// A plan is a plain value: a source layout, typed steps, a target layout. Print it, parse it, compare it, store it.
#pragma once

#include "reshard/planner/network.hpp"
#include "reshard/planner/step.hpp"

namespace reshard {

/// How an array moves. Each step starts from the layout that the step before it reached; the last reaches the target.
struct Plan {
    Layout source;            ///< where the array is
    Layout target;            ///< where it is wanted
    std::vector<Step> steps;  ///< in order; empty when every device holds the same at both ends
    Network network = {};     ///< replicas serve the nearest devices first; by default all are equally near
    friend bool operator==(const Plan&, const Plan&) = default;
};

/// The layout before step `index`. `index == steps.size()` gives the layout at the end.
[[nodiscard]] const Layout& layout_before(const Plan& plan, std::size_t index);

/// The number of ranks that the plan needs: one more than the largest device of any of its layouts.
[[nodiscard]] Index world_size(const Plan& plan);

/// A 64-bit hash of everything that decides what the ranks do: dtype, shape, devices, kinds, atoms, cuts. It ignores
/// the names of axes, and is equal on every machine.
[[nodiscard]] std::uint64_t fingerprint(const Plan& plan);

}  // namespace reshard
