// The ranks that reach each other's memory.
#pragma once

#include <memory>
#include <vector>

#include "backends/mpi/base/handles.hpp"
#include "backends/mpi/shm/arena.hpp"
#include "reshard/backends/mpi.hpp"

namespace reshard::mpi {

/// Among ascending ranks.
[[nodiscard]] bool is_in(const std::vector<Index>& ranks, Index rank);
[[nodiscard]] Index place_in(const std::vector<Index>& ranks, Index rank);  ///< pre: is_in

/// This rank's node among the nodes of a communicator. If shared memory is off, every rank is a node of its own.
struct NodeMap {
    Communicator own;            ///< of the members; empty where no memory is shared
    std::vector<Index> members;  ///< ascending; this rank is one of them
    Index count = 1;             ///< of all nodes

    [[nodiscard]] bool is_all() const { return count == 1 && !own.empty(); }  ///< all memory is reached
    [[nodiscard]] bool has(Index rank) const { return is_in(members, rank); }
};

/// Every rank a node of its own.
[[nodiscard]] NodeMap apart(MPI_Comm communicator);

/// Collective. Ranks that share a node but cannot map each other's memory, on any node, are taken for apart.
[[nodiscard]] Result<NodeMap> find_nodes(MPI_Comm communicator, const Options& options,
                                         const std::shared_ptr<Arena>& arena);

}  // namespace reshard::mpi
