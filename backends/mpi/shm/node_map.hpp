// The ranks that reach each other's memory.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "backends/mpi/base/handles.hpp"
#include "backends/mpi/shm/arena.hpp"
#include "reshard/backends/mpi.hpp"

namespace reshard::mpi {

/// Whether `rank` is in an ascending list, and its place there.
[[nodiscard]] bool is_in(const std::vector<Index>& ranks, Index rank);
[[nodiscard]] Index place_in(const std::vector<Index>& ranks, Index rank);  ///< pre: is_in

/// This rank's node, and how many nodes the communicator has. If no memory is shared, every rank is its own node.
struct NodeMap {
    Communicator own;            ///< of the members; empty if no memory is shared
    std::vector<Index> members;  ///< ascending; this rank is one of them
    Index count = 1;             ///< the number of nodes
    bool crowded = true;         ///< ranks of this machine may share cores

    [[nodiscard]] bool is_all() const { return count == 1 && !own.empty(); }  ///< this rank reaches all memory
    [[nodiscard]] bool has(Index rank) const { return is_in(members, rank); }
    /// How long a rank polls for messages before it lets others run. It is longer than a piece of a message takes,
    /// since a link is idle while nobody polls.
    [[nodiscard]] std::chrono::milliseconds patience() const { return std::chrono::milliseconds(crowded ? 0 : 5); }
};

/// Makes every rank its own node.
[[nodiscard]] NodeMap apart(MPI_Comm communicator);

/// Collective. If ranks of any node cannot map each other's memory, every rank becomes its own node.
[[nodiscard]] Result<NodeMap> find_nodes(MPI_Comm communicator, const Options& options,
                                         const std::shared_ptr<Arena>& arena);

}  // namespace reshard::mpi
