// The capabilities of a backend, as a plain value. A plan can be made from them before any backend exists.
#pragma once

#include "reshard/planner/integer.hpp"

namespace reshard {

/// The capabilities of a backend. By default no backend is known, and every step runs separately. They are the same on
/// all ranks, except `ranks_per_node` if nodes have different numbers of ranks.
struct Capabilities {
    /// All ranks reach each other's memory. One exchange between all ranks is then as good as any steps: it receives no
    /// more, holds nothing between source and target, and passes over the memory once.
    bool one_exchange = false;
    /// While one overlapping piece (Split) is in a step, another is in the next. A run then takes as long as its
    /// busiest level of the network. Arrays of a list share messages. False if the same cores would do all steps.
    bool steps_overlap = false;
    Index ranks_per_node = 1;  ///< ranks on this rank's node, which reach each other's memory
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

}  // namespace reshard
