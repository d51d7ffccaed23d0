// The program's own vectors, registered once before a loop of moves.
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

int move_in_a_loop() {
    auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const Index rank = backend->rank();
    constexpr Index n = 512;
    constexpr int moves = 3;
    Mesh mesh{{"ranks", backend->size()}};
    Layout by_rows = make_layout(mesh, DType::f64, {n, n}, P{"ranks", {}}).value();
    Layout by_columns = make_layout(mesh, DType::f64, {n, n}, P{{}, "ranks"}).value();
    int wrong = 0;

    // [README registered]
    std::vector<double> rows(tile_count(by_rows, rank)), columns(tile_count(by_columns, rank));
    auto in = backend->register_memory(std::as_writable_bytes(std::span(rows))).value();
    auto out = backend->register_memory(std::as_writable_bytes(std::span(columns))).value();
    for (int move = 0; move < moves; ++move) {
        std::ranges::fill(rows, move);
        wrong += redistribute(*backend, by_rows, by_columns, rows, columns) ? 0 : 1;
        wrong += columns.front() == move ? 0 : 1;
    }
    wrong += in.end() && out.end() ? 0 : 1;  // before the vectors are resized or freed
    // [README registered end]

    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf("wrong %d\n", all);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int wrong = move_in_a_loop();
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
