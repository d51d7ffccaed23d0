// Moves to and from block-cyclic layouts, compared with ScaLAPACK's own p?gemr2d: equal local arrays, byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>

#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

extern "C" {
void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridinfo(int, int*, int*, int*, int*);
void Cblacs_gridexit(int);
int numroc_(const int*, const int*, const int*, const int*, const int*);
void psgemr2d_(const int*, const int*, float*, const int*, const int*, const int*, float*, const int*, const int*,
               const int*, const int*);
void pdgemr2d_(const int*, const int*, double*, const int*, const int*, const int*, double*, const int*, const int*,
               const int*, const int*);
}

namespace reshard {
namespace {

// A row-major grid of the first processes, and the blocks of its matrix.
struct Cyclic {
    int rows, columns;
    int mb, nb;
};

struct Shape {
    int m, n;
};

// One local array of this process in ScaLAPACK's form, with a gap of two rows.
template <class Real>
struct Local {
    int context = -1;
    int rows = 0, columns = 0, lld = 1;
    std::array<int, 9> descriptor = {};
    std::vector<Real> a;

    Local(const Shape& shape, const Cyclic& cyclic) {
        Cblacs_get(-1, 0, &context);
        Cblacs_gridinit(&context, "R", cyclic.rows, cyclic.columns);
        int grid_rows = 0, grid_columns = 0, row = -1, column = -1;
        if (context >= 0) Cblacs_gridinfo(context, &grid_rows, &grid_columns, &row, &column);
        const bool inside = context >= 0 && row >= 0;
        if (!inside) context = -1;
        constexpr int first = 0;
        rows = inside ? numroc_(&shape.m, &cyclic.mb, &row, &first, &cyclic.rows) : 0;
        columns = inside ? numroc_(&shape.n, &cyclic.nb, &column, &first, &cyclic.columns) : 0;
        lld = rows + 2;
        descriptor = {1, context, shape.m, shape.n, cyclic.mb, cyclic.nb, 0, 0, lld};
        a.assign(static_cast<std::size_t>(lld) * static_cast<std::size_t>(columns), Real(-1));
        if (!inside) return;
        for (int j = 0; j < columns; ++j)
            for (int i = 0; i < rows; ++i) {
                const int global_i = (i / cyclic.mb * cyclic.rows + row) * cyclic.mb + i % cyclic.mb;
                const int global_j = (j / cyclic.nb * cyclic.columns + column) * cyclic.nb + j % cyclic.nb;
                at(i, j) = Real(global_i * shape.n + global_j);
            }
    }
    ~Local() {
        if (context >= 0) Cblacs_gridexit(context);
    }
    Local(const Local&) = delete;
    Local& operator=(const Local&) = delete;

    Real& at(int i, int j) { return a[static_cast<std::size_t>(j) * static_cast<std::size_t>(lld) + std::size_t(i)]; }
    /// Clears everything except the gaps.
    void wipe() {
        for (int j = 0; j < columns; ++j)
            for (int i = 0; i < rows; ++i) at(i, j) = Real(-2);
    }
    [[nodiscard]] Storage storage() const { return {0, {1, lld}}; }
};

void gemr2d(const Shape& shape, Local<float>& from, Local<float>& to, int context) {
    constexpr int one = 1;
    psgemr2d_(&shape.m, &shape.n, from.a.data(), &one, &one, from.descriptor.data(), to.a.data(), &one, &one,
              to.descriptor.data(), &context);
}

void gemr2d(const Shape& shape, Local<double>& from, Local<double>& to, int context) {
    constexpr int one = 1;
    pdgemr2d_(&shape.m, &shape.n, from.a.data(), &one, &one, from.descriptor.data(), to.a.data(), &one, &one,
              to.descriptor.data(), &context);
}

Layout layout_of(std::string_view dtype, const Shape& shape, const Cyclic& cyclic) {
    const auto mesh = parse_mesh(fmt::format("row={},column={}", cyclic.rows, cyclic.columns));
    return parse_layout(*mesh, fmt::format("{}[{}@row/{},{}@column/{}]", dtype, shape.m, cyclic.mb, shape.n, cyclic.nb))
        .value();
}

template <class Real>
void expect_the_same(Backend& backend, std::string_view dtype, const Shape& shape, const Cyclic& source,
                     const Cyclic& target) {
    SCOPED_TRACE(fmt::format("{} {} x {}: {} x {} by {} x {} to {} x {} by {} x {}", dtype, shape.m, shape.n,
                             source.rows, source.columns, source.mb, source.nb, target.rows, target.columns, target.mb,
                             target.nb));
    Local<Real> from(shape, source);
    Local<Real> theirs(shape, target);
    const std::vector<Real> wanted = theirs.a;
    theirs.wipe();
    int all = 0;
    Cblacs_get(-1, 0, &all);
    Cblacs_gridinit(&all, "R", 1, static_cast<int>(backend.size()));
    gemr2d(shape, from, theirs, all);
    Cblacs_gridexit(all);
    EXPECT_EQ(theirs.a, wanted);

    Local<Real> ours(shape, target);
    ours.wipe();
    const auto made = synthesize(layout_of(dtype, shape, source), layout_of(dtype, shape, target));
    ASSERT_TRUE(made) << made.error().message;
    auto executor = Executor::prepare(judge(made->plan(), backend.capabilities()), backend,
                                      Storages{from.storage(), ours.storage()});
    ASSERT_TRUE(executor) << executor.error().message;
    const auto done = executor->run(std::as_bytes(std::span(from.a)), std::as_writable_bytes(std::span(ours.a)));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(ours.a, theirs.a);
}

TEST(Gemr2d, MovesWhatScalapackMoves) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend);
    const auto ranks = static_cast<int>((*backend)->size());
    constexpr Shape shapes[] = {{100, 90}, {37, 53}, {5, 3}, {1, 200}};
    for (const Shape& shape : shapes) {
        const auto blocks = [&](int rows, int columns) {
            return Cyclic{rows, columns, (shape.m + rows - 1) / rows, (shape.n + columns - 1) / columns};
        };
        const Cyclic fine{2, ranks / 2, 8, 8};
        const Cyclic coarse{2, ranks / 2, 32, 16};
        const Cyclic turned{ranks / 2, 2, 3, 7};
        const Cyclic fewer{1, ranks - 1, 5, 2};
        const std::pair<Cyclic, Cyclic> moves[] = {
            {fine, coarse},   {fine, turned},           {fine, blocks(ranks, 1)},      {blocks(1, ranks), turned},
            {fewer, turned},  {coarse, fewer},          {blocks(2, ranks / 2), fewer}, {fewer, {1, 1, 64, 64}},
            {turned, coarse}, {{1, 1, 16, 16}, turned},
        };
        for (const auto& [source, target] : moves) {
            expect_the_same<double>(**backend, "f64", shape, source, target);
            expect_the_same<float>(**backend, "f32", shape, source, target);
        }
    }
}

}  // namespace
}  // namespace reshard
