// The reductions that stay inside a node, and the ranks that take part in each.
#pragma once

#include <span>

#include "backends/mpi/shm/node_map.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// A step that reduces, on this node.
struct ReduceGroups {
    bool inside = false;         ///< all that any rank of the node adds up lies on it
    std::vector<Index> members;  ///< of this rank's sum, ascending, itself among them; none where it takes no part
};

/// Collective over the node; the same number of steps on all of its ranks. Steps that copy are never inside.
[[nodiscard]] Result<std::vector<ReduceGroups>> find_sums(const NodeMap& nodes, std::span<const RankStep* const> steps);

}  // namespace reshard::mpi
