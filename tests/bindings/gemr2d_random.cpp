// Compares p?gemr2d over this library with ScaLAPACK's own: random grids of some of the processes, blocks, first
// processes, submatrices and leading dimensions. The local arrays must be equal, byte for byte.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "reshard/c/scalapack.h"

extern "C" {
void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridmap(int*, int*, int, int, int);
void Cblacs_gridinfo(int, int*, int*, int*, int*);
void Cblacs_gridexit(int);
int numroc_(const int*, const int*, const int*, const int*, const int*);
#define GEMR2D(letter)                                                                                      \
    void p##letter##gemr2d_(const int*, const int*, const void*, const int*, const int*, const int*, void*, \
                            const int*, const int*, const int*, const int*);
GEMR2D(s)
GEMR2D(d)
GEMR2D(c)
GEMR2D(z)
GEMR2D(i)
}

namespace {

using Call = decltype(&pdgemr2d_);

struct Type {
    const char* name;
    int bytes;
    Call theirs;
    Call ours;
};
constexpr std::array<Type, 5> types = {{{"s", 4, psgemr2d_, reshard_psgemr2d_},
                                        {"d", 8, pdgemr2d_, reshard_pdgemr2d_},
                                        {"c", 8, pcgemr2d_, reshard_pcgemr2d_},
                                        {"z", 16, pzgemr2d_, reshard_pzgemr2d_},
                                        {"i", 4, pigemr2d_, reshard_pigemr2d_}}};

int rank = 0;
int ranks = 0;

// Random numbers, the same on every process.
class Draw {
public:
    explicit Draw(unsigned seed) : engine_(seed) {}
    int from(int low, int high) { return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1)); }
    std::vector<int> order(int count) {
        std::vector<int> all(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = i;
        for (int i = count - 1; i > 0; --i)
            std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(from(0, i))]);
        return all;
    }

private:
    std::mt19937 engine_;
};

// A grid of some processes in any order.
struct Context {
    int number = -1;
    int rows = 0, columns = 0, row = -1, column = -1;

    Context(Draw& draw, bool all) {
        const int high = draw.from(1, ranks);
        const int wide = all ? ranks / high : draw.from(1, ranks / high);
        const bool fits = !all || high * wide == ranks;
        make(draw, fits ? high : 1, fits ? wide : ranks);
    }
    Context(Draw& draw, int high, int wide) { make(draw, high, wide); }
    void make(Draw& draw, int high, int wide) {
        rows = high, columns = wide;
        std::vector<int> places = draw.order(ranks);
        Cblacs_get(-1, 0, &number);
        Cblacs_gridmap(&number, places.data(), rows, rows, columns);
        int unused[2];
        if (number >= 0) Cblacs_gridinfo(number, &unused[0], &unused[1], &row, &column);
        if (row < 0) number = -1;
    }
    ~Context() {
        if (number >= 0) Cblacs_gridexit(number);
    }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
};

// A matrix on a grid, the submatrix that moves, and this process's part of the matrix.
struct Matrix {
    std::array<int, 9> descriptor = {};
    int i = 1, j = 1;
    std::vector<unsigned char> local;

    Matrix(Draw& draw, const Context& grid, int m, int n, int bytes, unsigned char salt) {
        i = draw.from(1, 12), j = draw.from(1, 12);
        const int rows = i - 1 + m + draw.from(0, 9);
        const int columns = j - 1 + n + draw.from(0, 9);
        const int mb = draw.from(1, draw.from(1, 40));
        const int nb = draw.from(1, draw.from(1, 40));
        const int first_row = draw.from(0, grid.rows - 1);
        const int first_column = draw.from(0, grid.columns - 1);
        const int gap = draw.from(0, 3);
        int own_rows = 0, own_columns = 0;
        if (grid.number >= 0) {
            own_rows = numroc_(&rows, &mb, &grid.row, &first_row, &grid.rows);
            own_columns = numroc_(&columns, &nb, &grid.column, &first_column, &grid.columns);
        }
        const int leading = std::max(1, own_rows + (rank % 2 == 0 ? gap : 0));
        descriptor = {1, grid.number, rows, columns, mb, nb, first_row, first_column, leading};
        if (grid.number < 0) descriptor = {1, -1, -7, -7, -7, -7, -7, -7, -7};  // no one reads these
        local.resize(static_cast<std::size_t>(leading) * static_cast<std::size_t>(own_columns) *
                     static_cast<std::size_t>(bytes));
        unsigned state = static_cast<unsigned>(rank) * 2654435761u + salt;
        for (unsigned char& byte : local)
            byte = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
    }
};

// True if the local bytes are equal on every process.
bool equal_everywhere(const std::vector<unsigned char>& ours, const std::vector<unsigned char>& theirs) {
    int equal = ours == theirs ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &equal, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return equal == 1;
}

// The contexts of some problems, since cached moves depend on them. Halfway, one grid is replaced by another of the
// same shape with the same number.
constexpr unsigned problems_per_world = 10;
struct World {
    explicit World(unsigned seed) : draw(seed), all(draw, true) {
        for (auto& grid : grids) grid = std::make_unique<Context>(draw, false);
    }
    Draw draw;
    Context all;
    std::array<std::unique_ptr<Context>, 3> grids;
    void renew() {
        Context& old = *grids[0];
        const int rows = old.rows;
        const int columns = old.columns;
        grids[0].reset();
        grids[0] = std::make_unique<Context>(draw, rows, columns);
    }
};

bool same(const World& world, unsigned seed) {
    Draw draw(seed);
    const Context& all = world.all;
    const Context& source_grid = *world.grids[static_cast<std::size_t>(draw.from(0, 2))];
    const Context& target_grid = *world.grids[static_cast<std::size_t>(draw.from(0, 2))];
    const Type& type = types[static_cast<std::size_t>(draw.from(0, 4))];
    const int m = draw.from(0, draw.from(1, 120));
    const int n = draw.from(0, draw.from(1, 120));
    const Matrix source(draw, source_grid, m, n, type.bytes, 1);
    Matrix theirs(draw, target_grid, m, n, type.bytes, 2);
    Matrix ours = theirs;
    const std::vector<unsigned char> before = source.local;
    const auto move = [&](Call call, Matrix& target) {
        call(&m, &n, source.local.data(), &source.i, &source.j, source.descriptor.data(), target.local.data(),
             &target.i, &target.j, target.descriptor.data(), &all.number);
    };
    bool equal = true;
    for (int again = 0; again < 2; ++again) {  // first prepared, then found in the cache
        for (unsigned char& byte : theirs.local) byte = static_cast<unsigned char>(~byte);
        ours.local = theirs.local;
        move(type.theirs, theirs);
        move(type.ours, ours);
        equal = equal_everywhere(ours.local, theirs.local) && equal;
    }
    equal = equal_everywhere(source.local, before) && equal;
    if (!equal && rank == 0) std::printf("wrong: p%sgemr2d, repeat with --seed %u\n", type.name, seed);
    return equal;
}

}  // namespace

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const bool one = count == 3 && std::strcmp(arguments[1], "--seed") == 0;
    const char* long_run = std::getenv("RESHARD_LONG");
    const unsigned first = one ? static_cast<unsigned>(std::atol(arguments[2])) : 0;
    const unsigned total = one ? 1 : long_run != nullptr ? 2000 : 100;
    unsigned wrong = 0;
    for (unsigned number = first / problems_per_world; number * problems_per_world < first + total; ++number) {
        World world(number);
        for (unsigned i = 0; i < problems_per_world; ++i) {
            const unsigned seed = number * problems_per_world + i;
            if (i == problems_per_world / 2) world.renew();
            if (seed >= first && seed < first + total) wrong += same(world, seed) ? 0 : 1;
        }
    }
    if (rank == 0) std::printf("%u problems, wrong %u\n", total, wrong);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
