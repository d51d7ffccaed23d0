// For a reader of ScaLAPACK: a block-cyclic matrix, column-major with a leading dimension, moves to other blocks and
// back.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "reshard/backends/local.hpp"
#include "reshard/reshard.hpp"

using namespace reshard;

namespace {

constexpr Index m = 100, n = 90;

double value(Index i, Index j) { return static_cast<double>(1000 * i + j); }

// ScaLAPACK's numroc: how many of n indices process p of np has in blocks of nb.
Index numroc(Index indices, Index nb, Index p, Index np) {
    const Index blocks = indices / nb;
    const Index extra = blocks % np;
    return blocks / np * nb + (p < extra ? nb : p == extra ? indices % nb : 0);
}

// The local arrays as in a ScaLAPACK program: column-major, with columns `lld` apart.
struct Local {
    Index rows, columns, lld;
    std::vector<double> a;
};

Local local_of(Index rank, Index mb, Index nb) {
    const Index rows = numroc(m, mb, rank / 2, 2);
    const Index columns = numroc(n, nb, rank % 2, 2);
    return {rows, columns, rows + 3, std::vector<double>(static_cast<std::size_t>((rows + 3) * columns), -1)};
}

double& at(Local& local, Index i, Index j) { return local.a[static_cast<std::size_t>(j * local.lld + i)]; }

// ScaLAPACK's indxl2g: the global index of local index l of process p.
Index global(Index l, Index nb, Index p) { return (l / nb * 2 + p) * nb + l % nb; }

}  // namespace

int main() {
    // [README scalapack]
    Mesh grid{{"row", 2}, {"column", 2}};                                        // a 2 x 2 process grid
    Layout source = parse_layout(grid, "f64[100@row/8,90@column/8]").value();    // DESCA: M, N, MB, NB
    Layout target = parse_layout(grid, "f64[100@row/32,90@column/16]").value();  // DESCB
    Plan plan = synthesize(source, target).value().plan();
    // [README scalapack end]
    local::World world(4);
    std::vector<Local> a, b;
    std::vector<Executor> executors;
    std::vector<std::unique_ptr<Bound>> bound;
    std::vector<std::unique_ptr<Ticket>> tickets;
    for (Index rank = 0; rank < 4; ++rank) {
        a.push_back(local_of(rank, 8, 8));
        b.push_back(local_of(rank, 32, 16));
        for (Index i = 0; i < a.back().rows; ++i)
            for (Index j = 0; j < a.back().columns; ++j)
                at(a.back(), i, j) = value(global(i, 8, rank / 2), global(j, 8, rank % 2));
        const Storages storages{Storage{0, {1, a.back().lld}}, Storage{0, {1, b.back().lld}}};
        executors.push_back(
            Executor::prepare(judge(plan, world.rank(rank).capabilities()), world.rank(rank), storages).value());
    }
    for (std::size_t rank = 0; rank < 4; ++rank) {
        const Buffers buffers{std::as_bytes(std::span(a[rank].a)), std::as_writable_bytes(std::span(b[rank].a)), {}};
        bound.push_back(executors[rank].bind(buffers).value());
        tickets.push_back(bound.back()->start().value());
    }
    bool moved = true;
    for (auto& ticket : tickets) moved = moved && ticket->wait().has_value();
    Index wrong = 0;
    for (Index rank = 0; rank < 4; ++rank) {
        Local& here = b[static_cast<std::size_t>(rank)];
        for (Index j = 0; j < here.columns; ++j)
            for (Index i = 0; i < here.lld; ++i) {
                const bool gap = i >= here.rows;
                const double wanted = gap ? -1 : value(global(i, 32, rank / 2), global(j, 16, rank % 2));
                if (at(here, i, j) != wanted) ++wrong;
            }
    }
    std::printf("blocks of 8 x 8 to blocks of 32 x 16: wrong %lld of %lld\n", static_cast<long long>(wrong),
                static_cast<long long>(m * n));
    return moved && wrong == 0 ? 0 : 1;
}
