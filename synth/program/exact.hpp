// The best order of a small program.
#pragma once

#include "synth/program/improve.hpp"

namespace reshard::program {

/// The most activities that exact takes.
inline constexpr int exact_activities_max = 64;

/// The outcome of a branch and bound over orders.
struct Exact {
    Found found;             ///< at least as good as the order it began with
    bool exhausted = false;  ///< no order is better
    Index states = 0;        ///< visited
};

/// Branch and bound over orders, at most `states_max` states. If two orders begin with the same activities, it drops
/// the one that is later in every end, resource and place that the rest depends on. Stops at the bound. pre: the order
/// of `best` fits; at most exact_activities_max activities.
[[nodiscard]] Exact exact(const Activities& program, const Paths& paths, Found best, Index bound, Index states_max);

}  // namespace reshard::program
