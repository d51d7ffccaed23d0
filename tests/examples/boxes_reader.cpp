// For a reader with a coupler: each rank names the boxes that it has and the boxes that it wants.
#include <cstdio>

#include <reshard/backends/mpi.hpp>
#include <reshard/boxes/exchange.hpp>
#include <reshard/boxes/nodes.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

int couple(Backend& backend) {
    const Index ranks = backend.size();
    const Index rank = backend.rank();
    const Index half = ranks / 2;
    const Index rows = 120;
    const Index columns = 240;

    // [README boxes]
    // The first half of the ranks runs the ocean and owns bands of rows. The other half runs the ice, in columns.
    RankBoxes own;
    if (rank < half) own.have = {{{rank * rows / half, (rank + 1) * rows / half}, {0, columns}}};
    const Index ice = rank - half;
    const Index first = ice * columns / (ranks - half);
    const Index last = (ice + 1) * columns / (ranks - half);
    if (rank >= half) own.want = {{{0, 30}, {first, last}}, {{90, rows}, {first, last}}};  // both poles

    BoxExchange exchange = BoxExchange::prepare(DType::f64, {rows, columns}, own, backend).value();
    std::vector<double> ocean(static_cast<std::size_t>(exchange.have_bytes()) / sizeof(double), rank);
    std::vector<double> poles(static_cast<std::size_t>(exchange.want_bytes()) / sizeof(double));
    if (const auto moved = exchange.run(ocean, poles); !moved) std::puts(describe(moved.error()).c_str());
    // [README boxes end]

    int wrong = 0;
    for (Index at = 0; at < std::ssize(poles); ++at) {
        Index row = at / (last - first);
        if (row >= 30) row += 60;
        Index owner = 0;
        while ((owner + 1) * rows / half <= row) ++owner;
        wrong += poles[static_cast<std::size_t>(at)] == static_cast<double>(owner) ? 0 : 1;
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == half)
        std::printf("rank %d received %lld bytes; wrong %d\n", static_cast<int>(rank),
                    static_cast<long long>(exchange.traffic().received_bytes), all);
    return all;
}

// Each node fetches an element once, and shares it.
int share_in_nodes(Backend& backend) {
    const Index rank = backend.rank();
    // [README nodes]
    // Devices 0 and 1 are one node, 2 and 3 the other. Each of devices 1, 2 and 3 wants the whole array.
    const Layout source = parse_layout(Mesh{{"x", 2}}, "f64[1200@x,2400]").value();
    const Layout target = parse_layout(Mesh({{"y", 3}}, {1, 2, 3}), "f64[1200,2400]").value();
    const Machine machine{"two nodes",
                          {{"node", 2, 2'000'000, 8'000'000'000}, {"link", index_max, 50'000'000, 1'000'000'000}},
                          20'000'000'000};  // devices in a block, picoseconds a message, bytes a second
    const NodeMove move = through_nodes({source, target}, machine).value();
    const Index plan_picoseconds = synthesize(source, target, {.machine = machine}).value().picoseconds;
    const bool faster = move_picoseconds(move, machine) < plan_picoseconds;

    Executor executor = Executor::prepare_through_nodes(move, backend).value();
    std::vector<double> in(tile_count(source, rank), rank);
    std::vector<double> out(tile_count(target, rank));
    if (const auto moved = executor.run(in, out); !moved) std::puts(describe(moved.error()).c_str());
    // [README nodes end]

    int wrong = 0;  // the upper half of the rows was on device 0
    for (std::size_t at = 0; at < out.size(); ++at) wrong += out[at] == (at < out.size() / 2 ? 0 : 1) ? 0 : 1;
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == backend.size() / 2)
        std::printf("through nodes: %s than a plan; wrong %d\n", faster ? "faster" : "not faster", all);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int wrong = 1;
    if (const auto backend = mpi::make_backend(MPI_COMM_WORLD)) wrong = couple(**backend) + share_in_nodes(**backend);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
