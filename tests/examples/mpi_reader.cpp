// For a reader of MPI: your communicator, your buffers, rows to columns.
#include <cstdio>

#include <reshard/mpi.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

// All that holds a communicator is gone when this returns, before MPI_Finalize.
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
    auto backend = mpi::make_backend(MPI_COMM_WORLD).value();  // borrows; never initializes or frees your MPI
    Executor executor = Executor::prepare(synthesize(by_rows, by_columns).value().plan, *backend).value();
    rows.resize(static_cast<std::size_t>(count(tile(by_rows, rank))), rank);
    columns.resize(static_cast<std::size_t>(count(tile(by_columns, rank))));
    std::vector<std::byte> workspace(static_cast<std::size_t>(executor.workspace_bytes()));
    const auto moved =
        executor.run(std::as_bytes(std::span(rows)), std::as_writable_bytes(std::span(columns)), workspace);
    if (!moved) std::puts(describe(moved.error()).c_str());
    // [README mpi end]

    // Element (i, j) came from the rank that held row i.
    const Tile mine = tile(by_columns, rank);
    const Index height = tile_extent(by_rows.dims[0]);
    int wrong = moved ? 0 : 1;
    for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < mine[1].size(); ++j)
            wrong +=
                columns[static_cast<std::size_t>(i * mine[1].size() + j)] != static_cast<double>(i / height) ? 1 : 0;
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
