// A rank that waits for ranks of other nodes seldom looks for letters, and lets other ranks of its machine run.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <memory>
#include <vector>

#include "backends/mpi/shm/node_map.hpp"
#include "backends/mpi/shm/signals.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
#include "support/world.hpp"

namespace {

int looks = 0;  // for letters

}  // namespace

// The backend calls this function, which calls MPI's own.
extern "C" int MPI_Iprobe(int source, int tag, MPI_Comm communicator, int* come, MPI_Status* status) {
    ++looks;
    return PMPI_Iprobe(source, tag, communicator, come, status);
}

namespace reshard::mpi {
namespace {

Options two_ranks_a_node() {
    Options options;
    options.ranks_per_node = 2;
    return options;
}

// A look is a system call over some networks, as long as a small move takes. It is allowed once in a millisecond, and
// once more in each 20 ms of waiting.
TEST(Waits, RunsLookSeldomForLetters) {
    if (world_size_of() < 4) GTEST_SKIP() << "needs two nodes";
    const auto backend = make_backend(MPI_COMM_WORLD, two_ranks_a_node()).value();
    const Mesh mesh{{"ranks", world_size_of()}};
    const Layout rows = *make_layout(mesh, DType::f64, {8, 8}, P{"ranks", {}});
    const Layout columns = *make_layout(mesh, DType::f64, {8, 8}, P{{}, "ranks"});
    const auto made = synthesize(rows, columns, {.capabilities = backend->capabilities()}).value();
    Executor executor = Executor::prepare(made, *backend).value();
    const std::vector<double> in(tile_count(rows, world_rank()), 1.0);
    std::vector<double> out(tile_count(columns, world_rank()));
    looks = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < 2000; ++run) ASSERT_TRUE(executor.run(in, out));
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LE(looks, 2 * taken.count() + 2);
    EXPECT_EQ(out, std::vector<double>(out.size(), 1.0));
}

// A rank that spins keeps its peers from their cores, whether they are of its node or not.
TEST(Waits, RanksOfSeveralNodesShareTheCoresOfTheirMachine) {
    const bool crowded = Signals::share_cores(MPI_COMM_WORLD).value();
    const auto arena = std::make_shared<Arena>(true, world_rank());
    const NodeMap nodes = find_nodes(MPI_COMM_WORLD, two_ranks_a_node(), arena).value();
    const auto signals = Signals::make(nodes.own.get(), arena, 0, std::chrono::minutes(1)).value();
    EXPECT_EQ(nodes.crowded, crowded);
    EXPECT_EQ(signals->crowded(), crowded);
}

}  // namespace
}  // namespace reshard::mpi
