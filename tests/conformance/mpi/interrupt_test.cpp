// An interrupt while ranks prepare or agree, and one of them takes long.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <functional>

#include "../harness.hpp"
#include "../move.hpp"
#include "reshard/backends/mpi.hpp"
#include "src/base/interrupt.hpp"

namespace {

std::function<void()> before_copy;  // of a communicator, once

}  // namespace

extern "C" int MPI_Comm_idup(MPI_Comm communicator, MPI_Comm* copy, MPI_Request* request) {
    if (const auto first = std::exchange(before_copy, {})) first();
    return PMPI_Comm_idup(communicator, copy, request);
}

namespace reshard::conformance {
namespace {

using Clock = std::chrono::steady_clock;

TEST(InterruptsOfMpi, EndPrepare) {
    const auto ranks = static_cast<int>(harness().ranks());
    if (ranks == 1) GTEST_SKIP() << "one rank waits for nobody";
    const Plan plan = *plan_of(fmt::format("x={}", ranks), "f32[96@x,64]", StepKind::exchange, "f32[96,64@x]");
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    const auto rank = static_cast<int>((*backend)->rank());
    const int late = ranks - 1;
    const auto all_others_have_ended = [&] {
        for (int other = 0; other < late; ++other)
            MPI_Recv(nullptr, 0, MPI_BYTE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    if (rank == late) before_copy = all_others_have_ended;
    std::optional<Interrupt> interrupt;
    if (rank == 0) interrupt.emplace([] { return true; });
    const auto begin = std::chrono::steady_clock::now();
    const auto executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend);
    if (rank != late) MPI_Send(nullptr, 0, MPI_BYTE, late, 7, MPI_COMM_WORLD);
    interrupt.reset();
    EXPECT_EQ(executor ? "" : executor.error().message, "rank 0 was interrupted while the ranks prepared");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
    const auto again = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend);
    EXPECT_EQ(again ? "" : again.error().message,
              "an earlier call of this backend failed: rank 0 was interrupted while the ranks prepared");
    backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    expect_moves(**backend, {{plan}});
}

// The last rank comes after all others have returned, and its peers have said that one of them was interrupted.
TEST(InterruptsOfMpi, EndAnAgreement) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    const int late = static_cast<int>(harness().ranks()) - 1;
    for (const auto& [shared, per_node] : {std::pair{true, 0}, {true, 2}, {false, 0}}) {
        mpi::Options options;
        options.shared_memory = shared;
        options.ranks_per_node = per_node;
        SCOPED_TRACE(fmt::format("shared {}, {} ranks a node", shared, per_node));
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        const auto rank = static_cast<int>((*backend)->rank());
        for (const int interrupted : {0, late - 1}) {
            ASSERT_TRUE((*backend)->agree(1));
            const auto begin = Clock::now();
            if (rank == late) MPI_Barrier(MPI_COMM_WORLD);
            std::optional<Interrupt> interrupt;
            if (rank == interrupted)
                interrupt.emplace([&] { return Clock::now() - begin > std::chrono::milliseconds(100); });
            const auto agreed = (*backend)->agree(1);
            interrupt.reset();
            if (rank != late) MPI_Barrier(MPI_COMM_WORLD);
            ASSERT_FALSE(agreed);
            EXPECT_EQ(agreed.error().message, fmt::format("rank {} was interrupted in Backend::agree", interrupted));
        }
        const auto again = (*backend)->agree(1);
        EXPECT_TRUE(again) << again.error().message;
    }
}

}  // namespace
}  // namespace reshard::conformance
