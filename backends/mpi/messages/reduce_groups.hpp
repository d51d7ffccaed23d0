// The reductions that stay inside a node, and the ranks that take part in each.
#pragma once

#include <span>

#include "backends/mpi/shm/node_map.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// A step that reduces, as this node sees it.
struct ReduceGroups {
    bool inside = false;         ///< all summands that any rank of the node adds up or gives are on the node
    std::vector<Index> members;  ///< of this rank's sum, ascending, with this rank; empty if it takes no part
};

/// Collective over the node, with the same number of steps on all its ranks. Steps that copy are never inside.
[[nodiscard]] Result<std::vector<ReduceGroups>> find_sums(const NodeMap& nodes, std::span<const RankStep* const> steps);

}  // namespace reshard::mpi
