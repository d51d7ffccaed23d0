// For a reader with a stencil: a halo of one row, filled in place.
#include <cstdio>

#include <reshard/backends/mpi.hpp>
#include <reshard/halo/exchange.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

int fill_rows(Backend& backend) {
    const Index ranks = backend.size();
    const Index rank = backend.rank();

    // [README halo]
    Mesh mesh{{"ranks", ranks}};
    HaloLayout layout = parse_halo_layout(mesh, "f64[1000@ranks~(1,1),500]").value();
    HaloExchange fill = HaloExchange::prepare(layout, backend).value();
    std::vector<Index> shape = array_shape(layout, rank);  // its block and its halo; core_of says where the block lies
    std::vector<double> array(static_cast<std::size_t>(shape[0] * shape[1]), rank);
    if (const auto filled = fill.run(array); !filled) std::puts(describe(filled.error()).c_str());
    // [README halo end]

    // The row above comes from the rank before, the row below from the rank after, and the ends stay.
    int wrong = 0;
    for (Index at = 0; at < std::ssize(array); ++at) {
        const Index row = at / shape[1];
        Index owner = rank;
        if (row == 0 && rank > 0) --owner;
        if (row == shape[0] - 1 && rank + 1 < ranks) ++owner;
        wrong += array[static_cast<std::size_t>(at)] == static_cast<double>(owner) ? 0 : 1;
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf("wrong %d\n", all);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int wrong = 1;
    if (const auto backend = mpi::make_backend(MPI_COMM_WORLD)) wrong = fill_rows(**backend);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
