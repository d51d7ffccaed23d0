// A gather whose mesh lists its devices in no order: the plan and the move through nodes on 2 nodes of 4 ranks. Run it
// with bench/boxes/two_nodes.py. Arguments: rows, columns, rounds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <reshard/backends/mpi.hpp>
#include <reshard/boxes/nodes.hpp>
#include <reshard/execute.hpp>
#include <reshard/synthesize.hpp>
#include <reshard/text.hpp>

using namespace reshard;

namespace {

struct Contestant {
    const char* name;
    Executor executor;
    std::vector<double> seconds = {};
};

// The seconds of the slowest rank.
double run(Contestant& one, std::span<const float> in, std::span<float> out) {
    std::ranges::fill(out, -1.0F);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (const auto moved = one.executor.run(in, out); !moved) {
        std::fprintf(stderr, "%s: %s\n", one.name, describe(moved.error()).c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

int bench(Backend& backend, Index rows, Index columns, int rounds) {
    const Mesh mesh{{{"a", 2}, {"b", 2}, {"c", 2}}, {0, 3, 5, 6, 1, 7, 2, 4}};
    const Layout source = make_layout(mesh, DType::f32, {rows, columns}, P{{"a", "b", "c"}, {}}).value();
    const Layout target = make_layout(mesh, DType::f32, {rows, columns}, P{{}, {}}).value();
    const Machine machine{"two nodes",
                          {{"node", 4, 2'000'000, 2'000'000'000}, {"link", index_max, 100'000'000, 25'000'000}},
                          5'000'000'000};
    const Synthesis plan = synthesize(source, target, {.machine = machine}).value();
    const auto nodes = faster_through_nodes({source, target}, plan.picoseconds, {.machine = machine});
    if (!nodes) return 1;
    std::vector<Contestant> all;
    all.push_back({"plan", Executor::prepare(Result<Judged<Plan>>(plan), backend).value()});
    all.push_back({"through nodes", Executor::prepare_through_nodes(*nodes, backend).value()});

    std::vector<float> in(tile_count(source, backend.rank()));
    const Index own = *position_of(mesh, backend.rank());
    std::iota(in.begin(), in.end(), static_cast<float>(own * std::ssize(in)));
    std::vector<float> out(tile_count(target, backend.rank()));
    int wrong = 0;
    for (int round = 0; round < rounds; ++round)
        for (Contestant& one : all) {
            one.seconds.push_back(run(one, in, out));
            for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] == static_cast<float>(i) ? 0 : 1;
        }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (backend.rank() != 0) return wrong;
    for (Contestant& one : all) {
        std::ranges::sort(one.seconds);
        std::printf("%-14s least %.4f s, median %.4f s\n", one.name, one.seconds.front(),
                    one.seconds[one.seconds.size() / 2]);
    }
    std::printf("a node receives at least %lld bytes; wrong %d\n", static_cast<long long>(rows * columns * 4 / 2),
                wrong);
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int wrong = 1;
    if (argc == 4) {
        const auto backend = mpi::make_backend(MPI_COMM_WORLD);
        if (backend) wrong = bench(**backend, std::atoll(argv[1]), std::atoll(argv[2]), std::atoi(argv[3]));
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
