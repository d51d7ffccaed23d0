// Best-first search over typed collectives: the shortest path from source to target in digits.
#pragma once

#include "synth/digits.hpp"

namespace reshard {

struct SearchOptions {
    Objective objective = Objective::bytes;  ///< bytes or steps; time is decided between plans, not inside a search
    Vocabulary vocabulary = Vocabulary::collectives;
    Index tile_max = index_max;  ///< elements: the memory bound
    Index hops_max = 20'000;     ///< moves looked at before it gives up
};

struct Found {
    std::vector<Step> steps;  ///< not yet fused; see shortcut
    bool arrived = false;
    bool complete = false;  ///< nothing cheaper exists in these digits
    Index states = 0;       ///< states expanded
};

/// A* with least_to_target as the heuristic; ties go to fewer moves between devices, then to the earlier state, so that
/// the answer is the same everywhere. One permute is tried from the first state of each shape only: later states of the
/// shape cost as much already.
[[nodiscard]] Found search(const Frame& frame, const SearchOptions& options);

}  // namespace reshard
