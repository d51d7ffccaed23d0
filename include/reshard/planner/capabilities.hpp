// What a backend can do, as a plain value: plans are made from it before, or without, any backend.
#pragma once

#include "reshard/planner/integer.hpp"

namespace reshard {

/// Of plans that nobody said a backend for: each step runs as a step. The same on all ranks, but for `ranks_per_node`
/// where nodes have different numbers of them.
struct Capabilities {
    /// All ranks reach each other's memory, so that one exchange between all of them is as good as any steps: it
    /// receives no more, holds nothing between source and target, and passes over the memory once.
    bool one_exchange = false;
    /// Of pieces that overlap (Split) one is in a step while another is in the next: over levels of the network a run
    /// takes as long as the busiest. Arrays of a list share messages. Not where the same cores would do all steps.
    bool steps_overlap = false;
    Index ranks_per_node = 1;  ///< of this rank's node: ranks that reach each other's memory
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

}  // namespace reshard
