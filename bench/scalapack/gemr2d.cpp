// pdgemr2d against ScaLAPACK's own, on the same arrays in turn: mpirun -n 4 gemr2d_bench [rounds]
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "reshard/c/scalapack.h"

extern "C" {
void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridinfo(int, int*, int*, int*, int*);
int numroc_(const int*, const int*, const int*, const int*, const int*);
void pdgemr2d_(const int*, const int*, const void*, const int*, const int*, const int*, void*, const int*, const int*,
               const int*, const int*);
}

namespace {

using Call = decltype(&pdgemr2d_);

struct Grid {
    int rows, columns;
    int block;
};

struct Case {
    const char* name;
    int n;      // rows and columns that move
    int begin;  // of the submatrix, from 1
    Grid source, target;
};

// This process's part of a square matrix on a grid.
struct Matrix {
    std::array<int, 9> descriptor = {};
    std::vector<double> local;

    Matrix(int extent, const Grid& grid) {
        int context = 0;
        int row = 0;
        int column = 0;
        std::array<int, 2> unused = {};
        constexpr int first = 0;
        Cblacs_get(-1, 0, &context);
        Cblacs_gridinit(&context, "R", grid.rows, grid.columns);
        Cblacs_gridinfo(context, &unused[0], &unused[1], &row, &column);
        const int rows = numroc_(&extent, &grid.block, &row, &first, &grid.rows);
        const int columns = numroc_(&extent, &grid.block, &column, &first, &grid.columns);
        descriptor = {1, context, extent, extent, grid.block, grid.block, 0, 0, std::max(rows, 1)};
        local.assign(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), row + 0.5 * column);
    }
};

// Seconds of the slowest process.
double seconds(Call call, const Case& one, const Matrix& source, Matrix& target, int context) {
    MPI_Barrier(MPI_COMM_WORLD);
    double spent = -MPI_Wtime();
    call(&one.n, &one.n, source.local.data(), &one.begin, &one.begin, source.descriptor.data(), target.local.data(),
         &one.begin, &one.begin, target.descriptor.data(), &context);
    spent += MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return spent;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 11;
    const int high = ranks % 2 == 0 ? 2 : 1;
    const int wide = ranks / high;
    const Case cases[] = {
        {"blocks 64 to 32", 4096, 1, {high, wide, 64}, {high, wide, 32}},
        {"blocks 64, grid transposed", 4096, 1, {high, wide, 64}, {wide, high, 64}},
        {"blocks 64 to columns", 4096, 1, {high, wide, 64}, {1, ranks, 4096 / ranks}},
        {"rows to columns", 4096, 1, {ranks, 1, 4096 / ranks}, {1, ranks, 4096 / ranks}},
        {"blocks 8 to 12", 2048, 1, {high, wide, 8}, {high, wide, 12}},
        {"a submatrix from 14 on", 2048, 14, {high, wide, 64}, {wide, high, 48}},
        {"small, blocks 64 to 32", 256, 1, {high, wide, 64}, {high, wide, 32}},
    };
    int context = 0;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", 1, ranks);
    if (rank == 0)
        fmt::print("{:<28}{:>10}{:>14}{:>12}{:>12}{:>9}\n", "f64", "n", "ScaLAPACK", "ours", "first", "times");
    for (const Case& one : cases) {
        const int extent = one.begin == 1 ? one.n : one.n + one.begin + 20;
        const Matrix source(extent, one.source);
        Matrix target(extent, one.target);
        const double first = seconds(reshard_pdgemr2d_, one, source, target, context);
        std::vector<double> theirs;
        std::vector<double> ours;
        for (int round = 0; round < rounds; ++round) {
            theirs.push_back(seconds(pdgemr2d_, one, source, target, context));
            ours.push_back(seconds(reshard_pdgemr2d_, one, source, target, context));
        }
        if (rank != 0) continue;
        fmt::print("{:<28}{:>10}{:>11.2f} ms{:>9.2f} ms{:>9.2f} ms{:>8.2f}x\n", one.name, one.n, median(theirs) * 1e3,
                   median(ours) * 1e3, first * 1e3, median(theirs) / median(ours));
    }
    MPI_Finalize();
    return 0;
}
