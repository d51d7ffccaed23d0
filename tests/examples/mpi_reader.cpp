// For a reader of MPI: your communicator, your buffers, rows to columns.
#include <cstdio>

#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

int move_rows_to_columns() {
    int ranks = 0;
    int rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    constexpr Index n = 840;
    std::vector<double> rows, columns;

    // [README mpi]
    Mesh mesh{{"ranks", ranks}};
    Layout by_rows = make_layout(mesh, DType::f64, {n, n}, P{"ranks", {}}).value();
    Layout by_columns = make_layout(mesh, DType::f64, {n, n}, P{{}, "ranks"}).value();
    rows.resize(tile_count(by_rows, rank), rank);
    columns.resize(tile_count(by_columns, rank));
    // Plans and prepares the first time; what it keeps hangs on your communicator and goes with it.
    const auto moved = mpi::redistribute(MPI_COMM_WORLD, by_rows, by_columns, rows, columns);
    if (!moved) std::puts(describe(moved.error()).c_str());
    // [README mpi end]

    // Element (i, j) came from the rank that held row i.
    const Index width = tile_shape(by_columns, rank)[1];
    const Index height = tile_extent(by_rows.dims[0]);
    int wrong = moved ? 0 : 1;
    for (Index at = 0; at < std::ssize(columns); ++at)
        wrong += columns[at] != static_cast<double>(at / width / height) ? 1 : 0;
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("wrong %d of %lld\n", all, static_cast<long long>(n * n));
    MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int wrong = move_rows_to_columns();
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
