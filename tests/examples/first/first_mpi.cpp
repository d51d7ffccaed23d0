// The first task of a reader of MPI: rows to columns.
// [README first_mpi]
#include <cstdio>
#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>
using namespace reshard;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int ranks = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Mesh mesh{{"ranks", ranks}};
    Layout rows = parse_layout(mesh, "f64[840@ranks,840]").value();
    Layout columns = parse_layout(mesh, "f64[840,840@ranks]").value();
    std::vector<double> in(tile_count(rows, rank), rank), out(tile_count(columns, rank));
    auto moved = mpi::redistribute(MPI_COMM_WORLD, rows, columns, in, out);
    std::printf("%s: %g to %g\n", moved ? "moved" : describe(moved.error()).c_str(), out.front(), out.back());
    return MPI_Finalize();
}
// [README first_mpi end]
