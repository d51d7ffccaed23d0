// Lowers the sum of halos to a backend's input on one rank, and to local additions.
#pragma once

#include "reshard/halo/halo.hpp"
#include "src/copy/copy.hpp"
#include "src/execute/caller_array.hpp"

namespace reshard {

/// The work of one array on this rank. Ghost cells of other ranks come into a workspace, and are added up from there.
struct LoweredSum {
    /// One for each dimension whose ghost cells other ranks may hold; equally many on all ranks. Each copies from the
    /// array, which is its source, to its part of the workspace, which is its target.
    std::vector<RankPlan> plans;
    std::vector<Index> places;  ///< of the plans' parts, in bytes from the start of the workspace
    /// One addition to the block.
    struct Addition {
        bool own = false;  ///< it reads the array itself; else the workspace
        BoxCombine combine;
    };
    std::vector<Addition> additions;  ///< in order
    Index array_bytes = 0;            ///< least size of the array
    Index workspace_bytes = 0;
    Index received_bytes = 0;  ///< from other ranks
};

/// Lowers one array. Errors: as HaloSum::prepare, without the errors of other ranks and of the backend.
[[nodiscard]] Result<LoweredSum> lower_sum(const HaloLayout& layout, Index rank, const std::optional<Storage>& array);

}  // namespace reshard
