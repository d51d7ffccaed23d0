#include "backends/mpi/shm/node_map.hpp"

#include <algorithm>
#include <array>

#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/shm/signals.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// Nodes of `ranks_per_node` count by `number`, which a rank has in the backend that its group is of.
Result<Communicator> split(MPI_Comm communicator, Index ranks_per_node, Index number) {
    MPI_Comm node = MPI_COMM_NULL;
    const auto rank = static_cast<int>(rank_of(communicator));
    const int code = ranks_per_node > 0
                         ? MPI_Comm_split(communicator, static_cast<int>(number / ranks_per_node), rank, &node)
                         : MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    RESHARD_CHECK(checked(code, "MPI_Comm_split"));
    return returning_errors(node);
}

}  // namespace

bool is_in(const std::vector<Index>& ranks, Index rank) { return std::ranges::binary_search(ranks, rank); }

Index place_in(const std::vector<Index>& ranks, Index rank) {
    return std::ranges::lower_bound(ranks, rank) - ranks.begin();
}

NodeMap apart(MPI_Comm communicator) { return {{}, {rank_of(communicator)}, size_of_communicator(communicator), true}; }

Result<NodeMap> find_nodes(MPI_Comm communicator, const Options& options, const std::shared_ptr<Arena>& arena) {
    const Index rank = rank_of(communicator);
    if (!options.shared_memory) return apart(communicator);
    // Ranks that only act as if they were on different nodes share the cores of their machine.
    RESHARD_TRY(const auto& machine, split(communicator, 0, rank));
    RESHARD_TRY(const auto& crowded, Signals::share_cores(machine.get()));
    arena->find_crowded(crowded);
    RESHARD_TRY(auto& own, split(communicator, options.ranks_per_node, arena->rank()));
    RESHARD_TRY(auto& members, gathered(own.get(), rank));
    const char reaches = Signals::make(own.get(), arena, 0, options.timeout) ? 1 : 0;
    RESHARD_TRY(const auto& all_reach, least(communicator, {reaches}));
    if (all_reach.front() == 0) return apart(communicator);
    const std::array<Index, 1> first = {members.front() == rank ? 1 : 0};
    RESHARD_TRY(const auto& count, reduced(communicator, first, MPI_INT64_T, MPI_SUM));
    return NodeMap{std::move(own), std::move(members), count.front(), arena->crowded()};
}

}  // namespace reshard::mpi
