// A move from pencils to pencils together with the halo after it: one exchange beside a move and then a fill. Both run
// in one launch, take turns, and every cell of both arrays is compared.
//   mpirun -n 4 halo_moves [EXTENT HALO ROUNDS]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace {

using namespace reshard;

void run_once(Bound& bound) {
    const auto ticket = bound.start();
    if (!ticket || !(*ticket)->wait()) MPI_Abort(MPI_COMM_WORLD, 1);
}

// The block's place in an array with halos.
Storage core_storage(const HaloLayout& layout, Index rank) {
    const std::vector<Index> shape = array_shape(layout, rank);
    const Box core = core_of(layout, rank);
    Storage storage{0, std::vector<Index>(shape.size(), 1)};
    for (std::size_t k = shape.size(); k-- > 1;) storage.strides[k - 1] = storage.strides[k] * shape[k];
    for (std::size_t k = 0; k < shape.size(); ++k) storage.offset += core[k].begin * storage.strides[k];
    return storage;
}

double timed(const auto& body) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    body();
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds * 1e6;
}

int run(int argc, char** argv) {
    const int extent = argc > 1 ? std::atoi(argv[1]) : 64, halo = argc > 2 ? std::atoi(argv[2]) : 1;
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 200;
    int grid[2] = {0, 0}, ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, grid);
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const Index rank = backend->rank();
    const Mesh mesh{{"a", grid[0]}, {"b", grid[1]}};
    const Layout source = parse_layout(mesh, fmt::format("f64[{0},{0}@a,{0}@b]", extent)).value();
    const HaloLayout target =
        parse_halo_layout(mesh, fmt::format("f64[{0}@a~{1}%,{0},{0}@b~{1}%]", extent, halo)).value();

    Index cells = 1;
    for (const Index side : array_shape(target, rank)) cells *= side;
    const auto tile = backend->allocate(static_cast<Index>(tile_count(source, rank) * sizeof(double))).value();
    const auto together = backend->allocate(cells * 8).value(), apart = backend->allocate(cells * 8).value();
    auto* const values = reinterpret_cast<double*>(tile->bytes().data());
    for (std::size_t i = 0; i < tile->bytes().size() / sizeof(double); ++i)
        values[i] = static_cast<double>(rank) * 1e8 + static_cast<double>(i);
    std::memset(together->bytes().data(), 0, together->bytes().size());
    std::memset(apart->bytes().data(), 0, apart->bytes().size());

    const HaloMove move{target, source};
    HaloExchange one = HaloExchange::prepare(std::span(&move, 1), *backend).value();
    const auto plan = synthesize(source, target.owned, {.capabilities = backend->capabilities()});
    Executor moved = Executor::prepare(plan.value(), *backend, {{}, core_storage(target, rank)}).value();
    HaloExchange fill = HaloExchange::prepare(target, *backend).value();
    const Buffers all{tile->bytes(), together->bytes(), {}}, block{tile->bytes(), apart->bytes(), {}},
        in_place{{}, apart->bytes(), {}};
    const auto at_once = one.bind(std::span(&all, 1)).value();
    const auto first = moved.bind(std::span(&block, 1)).value(), second = fill.bind(std::span(&in_place, 1)).value();

    std::vector<double> once, twice;
    for (int round = 0; round < rounds; ++round) {
        once.push_back(timed([&] { run_once(*at_once); }));
        twice.push_back(timed([&] { run_once(*first), run_once(*second); }));
    }
    int wrong = std::memcmp(together->bytes().data(), apart->bytes().data(), together->bytes().size()) == 0 ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::ranges::sort(once);
    std::ranges::sort(twice);
    if (rank == 0)
        std::printf("%s from %s on %s: one %.1f us (median %.1f), two %.1f (%.1f), two / one %.2f (%.2f)%s\n",
                    format(target).c_str(), format(source).c_str(), format(mesh).c_str(), once.front(),
                    once[once.size() / 2], twice.front(), twice[twice.size() / 2], twice.front() / once.front(),
                    twice[twice.size() / 2] / once[once.size() / 2], wrong == 0 ? "" : "  THE ARRAYS DIFFER");
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int failed = run(argc, argv);
    MPI_Finalize();
    return failed;
}
