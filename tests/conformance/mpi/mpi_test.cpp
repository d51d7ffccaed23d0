// Tests for MPI alone: the caller's communicators, and the all-to-all-w baseline.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "backends/baseline/alltoallw.hpp"
#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/text.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "support/world.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

Item turning_item(Index ranks) {
    return {*plan_of(fmt::format("x={}", ranks), "f32[13@x,7]", exchange, "f32[13,7@x]"), Style::padded,
            Style::column_major};
}

// Two halves run different plans at the same time, each on its own communicator with the ranks reversed.
TEST(Mpi, CommunicatorsOfTheCaller) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &half);
    {
        auto backend = mpi::make_backend(half);
        ASSERT_TRUE(backend) << backend.error().message;
        expect_moves(**backend, {turning_item((*backend)->size())}, {3, false});
        if ((*backend)->size() > 1) {
            EXPECT_EQ((*backend)->rank() == 0, world_rank() / 2 == (harness().ranks() - 1 - world_rank() % 2) / 2);
        }
    }
    MPI_Comm_free(&half);
}

TEST(Mpi, TheCallersErrorHandlerStays) {
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(own, &before);
    {
        auto backend = mpi::make_backend(own);
        ASSERT_TRUE(backend);
        expect_moves(**backend, {turning_item(harness().ranks())});
    }
    MPI_Errhandler after = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(own, &after);
    EXPECT_EQ(before, after);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&after);
    MPI_Comm_free(&own);
}

// The library's messages and the caller's do not mix on one communicator, whatever the tag.
TEST(Mpi, MessagesOfTheCallerAreNotTaken) {
    const auto ranks = static_cast<int>(harness().ranks());
    const int right = (world_rank() + 1) % ranks;
    const int sent = world_rank();
    int received = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    harness().on_every_rank([&](Backend& backend) { expect_moves(backend, {turning_item(backend.size())}); });
    MPI_Send(&sent, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(received, (world_rank() + ranks - 1) % ranks);
}

// All ranks choose the same way: the one with the least time on its slowest rank. Nothing else changes.
TEST(Mpi, TuneChoosesTheWayOfTheLeastTime) {
    using enum mpi::UnregisteredBuffers;
    mpi::Options options;
    options.bounce_bytes = 12345;
    for (const auto& [times, wanted] : {std::pair(std::array{3.0, 2.0, 1.0}, bounce_nontemporal),
                                        {{3.0, 1.0, 2.0}, bounce},
                                        {{1.0, 2.0, 3.0}, by_size}}) {
        std::size_t tried = 0;
        const auto tuned = mpi::tune(MPI_COMM_WORLD, options, [&, &times = times](Backend& backend) -> Result<double> {
            EXPECT_EQ(backend.size(), harness().ranks());
            const double own = times.at(tried++);
            return backend.rank() + 1 == backend.size() ? own : 0.5;
        });
        ASSERT_TRUE(tuned) << tuned.error().message;
        EXPECT_EQ(tried, times.size());
        EXPECT_EQ(tuned->unregistered_buffers, wanted);
        EXPECT_EQ(tuned->bounce_bytes, options.bounce_bytes);
    }
}

TEST(Mpi, TuneFailsOnAllRanksWhereOneFails) {
    const auto tuned = mpi::tune(MPI_COMM_WORLD, {}, [&](Backend& backend) -> Result<double> {
        if (backend.rank() == 0) return fail(Code::usage, "no buffers");
        return 1.0;
    });
    ASSERT_FALSE(tuned);
    EXPECT_EQ(tuned.error().code, Code::usage);
    EXPECT_EQ(tuned.error().message, world_rank() == 0 ? "no buffers" : "another rank could not prepare: no buffers");
}

// With every given way, runs are right. Targets larger than a sixth of the last cache bypass it.
TEST(Mpi, UnregisteredBuffersMoveEveryWay) {
    using enum mpi::UnregisteredBuffers;
    struct Case {
        mpi::UnregisteredBuffers way;
        Index divisor;  // of the last cache; 0: a small array
        bool pushes;
    };
    for (const auto& [way, divisor, pushes] :
         {Case(by_size, 6, true), {by_size, 7, false}, {bounce, 0, false}, {bounce_nontemporal, 0, false}}) {
        mpi::Options options;
        options.unregistered_buffers = way;
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        const Index ranks = (*backend)->size();
        const Index rows = divisor > 0 ? last_cache_bytes() / divisor / (2053 * 4) + 13 : 113;
        const Plan plan = *plan_of(fmt::format("x={}", ranks), fmt::format("f32[{}@x,2053]", rows), exchange,
                                   fmt::format("f32[{},2053@x]", rows));
        auto executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend);
        ASSERT_TRUE(executor) << executor.error().message;
        if (ranks == 1 || executor->describe().find("shared memory") == std::string::npos)
            GTEST_SKIP() << "one rank, or ranks that reach nobody's memory";
        EXPECT_EQ(executor->describe().find("(push, non-temporal stores") != std::string::npos, pushes)
            << executor->describe();
        Workbench bench({plan}, (*backend)->rank(), 1, 0);
        for (int run = 0; run < 2; ++run) {
            std::ranges::fill(bench.target.bytes, std::byte{0});
            const Buffers buffers = bench.buffers();
            const auto done = executor->run(buffers.source, buffers.target);
            ASSERT_TRUE(done) << done.error().message;
            ASSERT_EQ(bench.wrong(), "") << "run " << run;
        }
    }
}

TEST(Mpi, TheBaselineMovesTheSame) {
    auto backend = mpi::make_alltoallw_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const Item item = turning_item(harness().ranks());
    const Item replicating{*plan_of(mesh, "u8[9@x]", exchange, "u8[9]"), Style::row_major, Style::spaced};
    expect_moves(**backend, {item, replicating}, {3, false});
    expect_moves(**backend, {item, replicating}, {3, true});
}

TEST(Mpi, TheBaselineRunsOneExchangeOnly) {
    auto backend = mpi::make_alltoallw_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend);
    const Plan plan = *plan_of(fmt::format("x={}", harness().ranks()), "f32[6]", zero_fill, "f32[6]{U:x}");
    const auto executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend);
    ASSERT_FALSE(harness().ranks() > 1 && executor);
    if (!executor) {
        EXPECT_EQ(executor.error().code, Code::unsupported);
    }
}

// Executors prepared in one thread run in two at once: between the ranks of a node a run calls no MPI.
TEST(Mpi, ExecutorsRunInThreadsOfTheirOwn) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    const Plan plan = turning_item(harness().ranks()).plan;
    std::vector<Executor> executors;
    for (int i = 0; i < 2; ++i)
        executors.push_back(Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value());
    if (executors.front().describe().find("messages") != std::string::npos)
        GTEST_SKIP() << "messages in threads need MPI_THREAD_MULTIPLE";
    std::array<std::string, 2> wrong;
    const auto run_often = [&](std::size_t which) {
        for (std::uint64_t run = 0; run < 50; ++run) {
            Workbench bench({plan}, (*backend)->rank(), 10 * run + which, 0);
            const Buffers buffers = bench.buffers();
            const auto done = executors[which].run(buffers.source, buffers.target);
            wrong[which] += done ? bench.wrong() : done.error().message;
        }
    };
    std::thread other(run_often, 1);
    run_often(0);
    other.join();
    EXPECT_EQ(wrong[0], "");
    EXPECT_EQ(wrong[1], "");
}

// The number of mapped segments: those of this process and views of others.
int mapped_segments() {
    std::ifstream maps("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find("memfd:reshard") != std::string::npos ? 1 : 0;
    return found;
}

// Ranks leave a run at different times. Their shared memory lives until the last rank leaves, and ends with the
// backend.
TEST(Mpi, ABackendTakesItsMemoryWithIt) {
    const int before = mapped_segments();
    for (const Index ranks_per_node : {0, 2}) {
        mpi::Options options;
        options.ranks_per_node = ranks_per_node;
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        for (int run = 0; run < 5; ++run) expect_moves(**backend, {turning_item(harness().ranks())}, {3, false});
    }
    EXPECT_EQ(mapped_segments(), before);
}

TEST(Mpi, NoBackendWithoutACommunicator) {
    const auto backend = mpi::make_backend(MPI_COMM_NULL);
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().code, Code::backend);
}

}  // namespace
}  // namespace reshard::conformance
