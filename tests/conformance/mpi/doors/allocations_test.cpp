// Small moves and fills of halos that are known allocate nothing, since an allocation takes about as long as the move.
// A kept executor binds other buffers in place, also registered ones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
#include "support/allocations.hpp"
#include "support/world.hpp"

namespace reshard {
namespace {

struct Small {
    Layout rows;
    Layout columns;
};

// Each rank has `width` rows of `width` elements for each rank.
Small small(Index width) {
    const Mesh mesh{{"ranks", world_size_of()}};
    const Index side = width * world_size_of();
    return {*make_layout(mesh, DType::f64, {side, side}, P{"ranks", {}}),
            *make_layout(mesh, DType::f64, {side, side}, P{{}, "ranks"})};
}

void fill(std::span<double> in, double first) {
    std::iota(in.begin(), in.end(), first + static_cast<double>(in.size()) * world_rank());
}

bool right(std::span<const double> out, Index width, double first) {
    const Index side = width * world_size_of();
    for (Index i = 0; i < side; ++i) {
        for (Index j = 0; j < width; ++j) {
            const auto wanted = first + static_cast<double>(side * i + world_rank() * width + j);
            if (out[static_cast<std::size_t>(i * width + j)] != wanted) return false;
        }
    }
    return true;
}

TEST(Allocations, AKnownSmallMoveMakesNoObjects) {
    constexpr Index width = 4;
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const auto [rows, columns] = small(width);
    std::vector<double> in(tile_count(rows, world_rank()));
    std::vector<double> out(in.size());
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(redistribute(*backend, rows, columns, in, out));
    fill(in, 7);
    count_allocations();
    Result<void> moved = redistribute(*backend, rows, columns, in, out);
    EXPECT_EQ(counted_allocations(), 0);
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_TRUE(right(out, width, 7));

    const auto made = synthesize(rows, columns, {.capabilities = backend->capabilities()}).value();
    Executor executor = Executor::prepare(made, *backend).value();
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(executor.run(in, out));
    fill(in, 9);
    count_allocations();
    moved = executor.run(in, out);
    EXPECT_EQ(counted_allocations(), 0);
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_TRUE(right(out, width, 9));
}

// The same of sums, and of a plan of two steps with a workspace.
TEST(Allocations, AKnownSmallSumMakesNoObjects) {
    if (world_size_of() == 1) GTEST_SKIP() << "nothing is added up";
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const Mesh mesh{{"ranks", world_size_of()}};
    const auto layout = [&](const char* text) {
        return parse_layout(mesh, fmt::format(fmt::runtime(text), 3 * world_size_of())).value();
    };
    const Layout summands = layout("f64[{}]{{U:ranks}}");
    const Layout sum = layout("f64[{}]");
    std::vector<double> in(tile_count(summands, world_rank()));
    std::vector<double> out(tile_count(sum, world_rank()));
    const auto expect_none = [&](double value, const auto& run) {
        for (int call = 0; call < 3; ++call) ASSERT_TRUE(run());
        std::ranges::fill(in, value);
        count_allocations();
        const Result<void> moved = run();
        EXPECT_EQ(counted_allocations(), 0);
        ASSERT_TRUE(moved) << moved.error().message;
        EXPECT_EQ(out, std::vector<double>(out.size(), value * static_cast<double>(world_size_of())));
    };
    expect_none(7, [&] { return redistribute(*backend, summands, sum, in, out); });
    const Plan plan{summands, sum, {{StepKind::reduce_scatter, layout("f64[{}@ranks]")}, {StepKind::all_gather, sum}}};
    Executor executor = Executor::prepare(judge(plan, backend->capabilities()), *backend).value();
    expect_none(9, [&] { return executor.run(in, out); });
}

// A fill within one call makes no ticket and binds nothing: through mailboxes, and where ranks read each other's
// blocks.
TEST(Allocations, AKnownFillMakesNoObjects) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    for (const Index width : {2, 50'000}) {
        const Index all = 4 * width * world_size_of();
        const HaloLayout layout{*make_layout({{"ranks", world_size_of()}}, DType::f64, {all}, P{"ranks"}),
                                {{width, width, true}}};
        HaloExchange fill = HaloExchange::prepare(layout, *backend).value();
        const auto memory = backend->allocate(6 * width * Index{sizeof(double)}).value();
        const std::span cells(reinterpret_cast<double*>(memory->bytes().data()), static_cast<std::size_t>(6 * width));
        const auto set_block = [&](double first) {
            std::ranges::fill(cells, -1);
            const auto block = cells.subspan(static_cast<std::size_t>(width), static_cast<std::size_t>(4 * width));
            std::iota(block.begin(), block.end(), first + static_cast<double>(4 * width * world_rank()));
        };
        for (int call = 0; call < 3; ++call) {
            set_block(call);
            ASSERT_TRUE(fill.run(cells));
        }
        set_block(7);
        count_allocations();
        const Result<void> filled = fill.run(cells);
        EXPECT_EQ(counted_allocations(), 0) << "halos of " << width << " cells";
        ASSERT_TRUE(filled) << filled.error().message;
        Index wrong = 0;
        for (Index cell = 0; cell < 6 * width; ++cell) {
            const Index element = (4 * width * world_rank() + cell - width + all) % all;
            wrong += cells[static_cast<std::size_t>(cell)] == static_cast<double>(7 + element) ? 0 : 1;
        }
        EXPECT_EQ(wrong, 0) << "halos of " << width << " cells";
    }
}

// The same executor moves between ordinary, allocated and registered memory in turn. Two binds live side by side, and
// a registration that is dropped is not held by the executor.
TEST(Allocations, AnExecutorTakesOtherBuffersInPlace) {
    for (const Index width : {2, 150}) {
        const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
        const auto [rows, columns] = small(width);
        const std::size_t count = tile_count(rows, world_rank());
        const auto bytes = static_cast<Index>(count * sizeof(double));
        const auto made = synthesize(rows, columns, {.capabilities = backend->capabilities()}).value();
        Executor executor = Executor::prepare(made, *backend).value();
        const auto move = [&](std::span<double> in, std::span<double> out, double first) {
            fill(in, first);
            const auto moved = executor.run(in, out);
            ASSERT_TRUE(moved) << moved.error().message;
            ASSERT_TRUE(right(out, width, first));
        };
        std::vector<double> in(count);
        std::vector<double> out(count);
        for (int round = 0; round < 4; ++round) {
            move(in, out, 10 * round);
            const auto memory = backend->allocate(2 * bytes).value();
            const std::span both(reinterpret_cast<double*>(memory->bytes().data()), 2 * count);
            move(both.first(count), both.last(count), 10 * round + 1);
            move(in, both.last(count), 10 * round + 2);
            const auto kept =
                executor.bind(Buffers{std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(out)), {}});
            move(both.first(count), both.last(count), 10 * round + 3);
            fill(in, 10 * round + 4);
            ASSERT_TRUE((*kept)->start().value()->wait());
            ASSERT_TRUE(right(out, width, 10 * round + 4));
            const Index before = backend->memory_use().registered_bytes;
            {
                const auto held = backend->register_memory(std::as_writable_bytes(std::span(in)));
                ASSERT_TRUE(held) << held.error().message;
                move(in, out, 10 * round + 5);
            }
            EXPECT_EQ(backend->memory_use().registered_bytes, before);
            move(in, out, 10 * round + 6);
        }
    }
}

// Ranks that use several communicators get the backend of each, also after one was freed and another has its handle.
TEST(Allocations, TheLastBackendIsNotTakenForAnotherOne) {
    const auto [rows, columns] = small(3);
    std::vector<double> in(tile_count(rows, world_rank()));
    std::vector<double> out(in.size());
    for (int round = 0; round < 6; ++round) {
        MPI_Comm own = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
        for (int call = 0; call < 3; ++call) {
            fill(in, round + call);
            ASSERT_TRUE(mpi::redistribute(call == 1 ? MPI_COMM_WORLD : own, rows, columns, in, out));
            ASSERT_TRUE(right(out, 3, round + call));
        }
        const auto kept = mpi::backend_of(own).value();
        EXPECT_EQ(mpi::backend_of(own).value().get(), kept.get());
        EXPECT_NE(mpi::backend_of(MPI_COMM_WORLD).value().get(), kept.get());
        if (round % 2 == 0) {
            mpi::clear(own);
            EXPECT_NE(mpi::backend_of(own).value().get(), kept.get());
        }
        MPI_Comm_free(&own);
    }
    mpi::clear(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace reshard
