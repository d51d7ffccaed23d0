// Ranks that never come to a call, and invalid options.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backends/mpi/shm/peer_regions.hpp"
#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "conformance/mpi/registered/mapped.hpp"
#include "reshard/backends/mpi.hpp"
#include "support/time.hpp"
#include "support/world.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using Clock = std::chrono::steady_clock;

constexpr auto timeout = std::chrono::milliseconds(500);

Plan turning_plan() {
    return *plan_of(fmt::format("x={}", harness().ranks()), "f32[24@x,16]", exchange, "f32[24,16@x]");
}

// Shared memory inside a node, nodes of two ranks, and messages.
std::vector<mpi::Options> transports() {
    std::vector<mpi::Options> all(3);
    for (mpi::Options& options : all) options.timeout = timeout;
    all[1].ranks_per_node = 2;
    all[2].shared_memory = false;
    return all;
}

// Each rank in turn stays away. All other ranks name it soon after the timeout, and a late rank gets the error too.
template <class Body>
void expect_named(const mpi::Options& options, const Body& body) {
    for (const int away : {0, static_cast<int>(harness().ranks()) - 1}) {
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        body(**backend, away);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

TEST(Absence, ARankThatNeverCallsIsNamedAfterTheTimeout) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    for (const mpi::Options& options : transports()) {
        expect_named(options, [](Backend& backend, int away) {
            const Plan plan = turning_plan();
            auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
            ASSERT_TRUE(executor) << executor.error().message;
            Workbench bench({plan}, backend.rank(), 1, 0);
            const Buffers buffers = bench.buffers();
            const auto begin = Clock::now();
            if (backend.rank() == away) {
                MPI_Barrier(MPI_COMM_WORLD);
                return;
            }
            const auto done = executor->run(buffers.source, buffers.target);
            EXPECT_LT(Clock::now() - begin, test::soon);
            ASSERT_FALSE(done);
            EXPECT_NE(done.error().message.find(fmt::format("rank {}", away)), std::string::npos)
                << done.error().message;
            EXPECT_FALSE(executor->run(buffers.source, buffers.target));
            MPI_Barrier(MPI_COMM_WORLD);
        });
    }
}

TEST(Absence, ARankThatNeverComesToPrepareIsNamed) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    for (const mpi::Options& options : transports()) {
        expect_named(options, [](Backend& backend, int away) {
            if (backend.rank() == away) {
                MPI_Barrier(MPI_COMM_WORLD);
                const auto late = Executor::prepare(judge(turning_plan(), backend.capabilities()), backend);
                EXPECT_FALSE(late);
                return;
            }
            const auto begin = Clock::now();
            const auto executor = Executor::prepare(judge(turning_plan(), backend.capabilities()), backend);
            EXPECT_LT(Clock::now() - begin, test::soon);
            ASSERT_FALSE(executor);
            EXPECT_NE(executor.error().message.find(fmt::format("rank {} did not come to ", away)), std::string::npos)
                << executor.error().message;
            EXPECT_NE(executor.error().message.find("within 500 ms"), std::string::npos) << executor.error().message;
            const auto again = Executor::prepare(judge(turning_plan(), backend.capabilities()), backend);
            ASSERT_FALSE(again);
            EXPECT_NE(again.error().message.find("an earlier call of this backend failed"), std::string::npos);
            MPI_Barrier(MPI_COMM_WORLD);
        });
    }
}

TEST(Absence, ARankThatDropsItsBackendTellsTheOthers) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank has no peer to tell";
    for (mpi::Options options : transports()) {
        options.timeout = std::chrono::seconds(20);
        for (const int away : {0, static_cast<int>(harness().ranks()) - 1}) {
            auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
            ASSERT_TRUE(backend) << backend.error().message;
            if (world_rank() == away) {
                backend->reset();
            } else {
                const auto begin = Clock::now();
                const auto executor = Executor::prepare(judge(turning_plan(), (*backend)->capabilities()), **backend);
                EXPECT_LT(Clock::now() - begin, test::soon);
                ASSERT_FALSE(executor);
                EXPECT_EQ(executor.error().message, fmt::format("rank {} dropped its backend", away));
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

TEST(Absence, ARankThatNeverComesToMakeABackend) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    mpi::Options options;
    options.timeout = timeout;
    const auto begin = Clock::now();
    if (world_rank() > 0) {
        const auto backend = mpi::make_backend(own, options);
        ASSERT_FALSE(backend);
        EXPECT_EQ(backend.error().message, "not all ranks came to mpi::make_backend within 500 ms");
        EXPECT_LT(Clock::now() - begin, test::soon);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) {
        EXPECT_FALSE(mpi::make_backend(own, options));  // too late
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// MPI cannot cancel an all-reduce. When the late rank continues, its data belongs to callers that already got an error
// and have freed their tiles.
TEST(Absence, ARankThatIsLateInAnAllReduceWritesIntoNobodysTile) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank is never late";
    const Plan plan = *plan_of(fmt::format("x={}", harness().ranks()), "f32[262144]{U:x}", all_reduce, "f32[262144]");
    for (const int looks : {20, 400}) {
        expect_named(transports().back(), [&](Backend& backend, int away) {
            Executor executor = Executor::prepare(judge(plan, backend.capabilities()), backend).value();
            Workbench bench({plan}, backend.rank(), 1, executor.workspace_bytes());
            const Buffers buffers = bench.buffers();
            MPI_Barrier(MPI_COMM_WORLD);
            bool told = false;
            if (backend.rank() == away) {
                const auto bound = executor.bind({&buffers, 1});
                ASSERT_TRUE(bound) << bound.error().message;
                const auto ticket = (*bound)->start();
                ASSERT_TRUE(ticket) << ticket.error().message;
                for (int look = 0; look < looks; ++look) static_cast<void>((*ticket)->test());
                std::this_thread::sleep_for(2 * timeout);
                static_cast<void>((*ticket)->wait());
            } else {
                told = !executor.run(buffers.source, buffers.target);
            }
            constexpr auto freed = std::byte{0x5a};
            if (told) std::ranges::fill(buffers.target, freed);
            for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);
            if (told) {
                EXPECT_EQ(std::ranges::count(buffers.target, freed), std::ssize(buffers.target));
            }
        });
    }
}

// The same for messages. Ranks that give up first finish the messages between them. Then they get the error, and may
// free their tiles.
TEST(Absence, NoMessageIsUnderWayAfterAFailure) {
    if (harness().ranks() < 3 || harness().ranks() > 4) GTEST_SKIP() << "two ranks or three, and one that is missing";
    constexpr std::size_t whole = 96 * test::mebi;
    const auto ranks = static_cast<std::size_t>(harness().ranks());
    const Plan plan =
        *plan_of(fmt::format("x={}", ranks), fmt::format("u8[{}@x]", whole), all_gather, fmt::format("u8[{}]", whole));
    mpi::Options options = transports().back();
    options.timeout = std::chrono::seconds(20);
    options.piece_bytes = 0;  // one long message to each
    expect_named(options, [&](Backend& backend, int away) {
        auto executor =
            std::make_unique<Executor>(Executor::prepare(judge(plan, backend.capabilities()), backend).value());
        auto source = std::make_unique<test::Mapped>(whole / ranks);
        auto target = std::make_unique<test::Mapped>(whole);
        ASSERT_TRUE(source->made() && target->made());
        MPI_Barrier(MPI_COMM_WORLD);
        if (backend.rank() != away) {
            EXPECT_FALSE(executor->run({source->bytes(), target->bytes(), {}}));
        }
        executor.reset();
        source.reset();
        target.reset();
        for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);
    });
}

// A rank may drop an executor before a peer begins a run that needs no other rank. The data that the peer then packs
// must not reach the memory that replaced the dropped executor's bounce buffers.
TEST(Absence, RunsOfADroppedExecutorWriteIntoNobodysBounceBuffers) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank packs nothing";
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const std::vector<Plan> plans = {*plan_of(mesh, "f32[240@x,16]", exchange, "f32[240,16@x]"),
                                     *plan_of(mesh, "f32[1024]{U:x}", all_reduce, "f32[1024]")};
    for (const Plan& plan : plans) {
        for (int away = 0; away < static_cast<int>(harness().ranks()); ++away) {
            auto dropped = std::make_unique<Executor>(
                Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value());
            if (world_rank() == away) dropped.reset();
            MPI_Barrier(MPI_COMM_WORLD);
            Executor executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value();
            Workbench bench({plan}, world_rank(), 1, executor.workspace_bytes());
            const Buffers right = bench.buffers();
            const auto bound = executor.bind({&right, 1}).value();
            std::unique_ptr<Ticket> ticket;
            if (world_rank() != away) {
                ticket = bound->start().value();
                EXPECT_TRUE(ticket->test());  // its parts are packed
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (dropped) {
                Workbench lost({plan}, world_rank(), 2, dropped->workspace_bytes());
                const Buffers buffers = lost.buffers();
                EXPECT_FALSE(dropped->run(buffers));
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (!ticket) ticket = bound->start().value();
            const auto done = ticket->wait();
            EXPECT_TRUE(done) << done.error().message;
            EXPECT_EQ(bench.wrong(), "");
        }
    }
}

// A rank got an error and has moved its tiles elsewhere when a late rank begins the same run.
TEST(Absence, ALateRankWritesIntoNobodysTile) {
    if (harness().ranks() < 3 || harness().ranks() > 4) GTEST_SKIP() << "one that fails, one that is told, one late";
    constexpr Index rows = Index{4} << 20;  // so many that senders push them
    const Plan plan = *plan_of(fmt::format("x={}", harness().ranks()), fmt::format("f32[{}@x,12]", rows), exchange,
                               fmt::format("f32[{},12@x]", rows));
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    Executor executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value();
    const RankPlan& own = executor.plans()[0];
    auto source = (*backend)->allocate(own.source_bytes).value();
    auto target = (*backend)->allocate(own.target_bytes).value();
    auto bound = executor.bind(Buffers{source->bytes(), target->bytes(), {}}).value();
    MPI_Barrier(MPI_COMM_WORLD);
    const int late = static_cast<int>(harness().ranks()) - 1;
    if (world_rank() == 0) source.reset();  // which fails its run
    if (world_rank() == late) MPI_Barrier(MPI_COMM_WORLD);
    const auto ticket = bound->start();
    EXPECT_FALSE(ticket && (*ticket)->wait());
    constexpr auto kept = std::byte{0x5a};
    if (world_rank() != late) {
        target.reset();
        target = (*backend)->allocate(own.target_bytes).value();
        std::ranges::fill(target->bytes(), kept);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() != late) {
        EXPECT_EQ(std::ranges::count(target->bytes(), kept), std::ssize(target->bytes()));
    }
}

// Ranks 0 and 1 have finished the first run, and rank 1 fails in the second. The other ranks are still in the first
// run.
TEST(Absence, AFailureOfALaterRunDoesNotEndAnEarlierOne) {
    if (harness().ranks() < 4) GTEST_SKIP() << "needs two pairs of ranks";
    const Index pairs = harness().ranks() / 2;
    if (harness().ranks() != 2 * pairs) GTEST_SKIP() << "needs pairs of ranks";
    const Plan plan = *plan_of(fmt::format("x={},y=2", pairs), "f32[24@x,16@y]", all_gather, "f32[24@x,16]");
    for (mpi::Options options : transports()) {
        options.timeout = std::chrono::seconds(20);
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        auto executor =
            std::make_unique<Executor>(Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value());
        Workbench bench({plan}, world_rank(), 1, executor->workspace_bytes());
        const Buffers buffers = bench.buffers();
        const auto run = [&] { return executor->run(buffers.source, buffers.target); };
        std::unique_ptr<Ticket> ticket;
        if (world_rank() < 2) {
            EXPECT_TRUE(run());
        } else if (world_rank() % 2 == 0) {
            ticket = executor->bind({&buffers, 1}).value()->start().value();
        }
        if (world_rank() == 0) executor.reset();
        MPI_Barrier(MPI_COMM_WORLD);
        if (world_rank() == 1) {
            const auto done = run();
            ASSERT_FALSE(done);
            EXPECT_NE(done.error().message.find("rank 0 dropped its executor"), std::string::npos);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (ticket) {
            const auto done = ticket->wait();
            EXPECT_TRUE(done) << done.error().message;
        } else if (world_rank() > 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            EXPECT_TRUE(run());
        }
        EXPECT_EQ(bench.wrong(), "");
        ticket.reset();
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// No later receive may take the messages that peers sent to a dropped executor, even if its communicator is used again.
TEST(Absence, MessagesToADroppedExecutorAreLost) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank sends nothing";
    mpi::Options options;
    options.shared_memory = false;
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
    ASSERT_TRUE(backend) << backend.error().message;
    const Plan plan = turning_plan();
    for (std::uint64_t round = 1; round <= 10; ++round) {
        auto executor =
            std::make_unique<Executor>(Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value());
        Workbench lost({plan}, world_rank(), 2 * round, 0);
        const Buffers buffers = lost.buffers();
        if (world_rank() == 0) {
            executor.reset();
        } else {
            EXPECT_FALSE(executor->run(buffers.source, buffers.target));
            executor.reset();
        }
        MPI_Barrier(MPI_COMM_WORLD);
        Executor next = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend).value();
        Workbench bench({plan}, world_rank(), 2 * round + 1, 0);
        const Buffers right = bench.buffers();
        const auto done = next.run(right.source, right.target);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(bench.wrong(), "");
    }
}

TEST(Absence, OptionsThatCannotBe) {
    const auto message_of = [](const mpi::Options& options) {
        const auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        return backend ? std::string() : std::string(name(backend.error().code)) + ": " + backend.error().message;
    };
    const auto with = [](auto member, auto value) {
        mpi::Options options;
        options.*member = value;
        return options;
    };
    using Options = mpi::Options;
    EXPECT_EQ(message_of(with(&Options::bounce_bytes, Index{-1})), "usage: mpi::Options::bounce_bytes is negative: -1");
    EXPECT_EQ(message_of(with(&Options::piece_bytes, Index{-2})), "usage: mpi::Options::piece_bytes is negative: -2");
    EXPECT_EQ(message_of(with(&Options::staging_bytes, -index_max)),
              fmt::format("usage: mpi::Options::staging_bytes is negative: {}", -index_max));
    EXPECT_EQ(message_of(with(&Options::ranks_per_node, Index{-1})),
              "usage: mpi::Options::ranks_per_node is negative: -1");
    EXPECT_EQ(message_of(with(&Options::timeout, std::chrono::milliseconds(0))),
              "usage: mpi::Options::timeout is not more than 0: 0 ms");
    EXPECT_EQ(message_of(with(&Options::piece_bytes, Index{0})), "");
    // Only one rank has the wrong options; the others get the error.
    const bool odd_one = world_rank() == 0;
    const std::string said = message_of(with(&Options::bounce_bytes, Index{odd_one ? -1 : 1 << 20}));
    EXPECT_EQ(said, odd_one ? "usage: mpi::Options::bounce_bytes is negative: -1"
                            : "backend: another rank failed in mpi::make_backend");
}

// If only one side has a box, the error names the step.
TEST(Absence, AStepThatDoesNotFitIsNamed) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank sends nothing";
    const Plan plan = turning_plan();
    RankStep step = lower(plan, world_rank()).value().steps.front();
    step.step = 4;
    if (world_rank() == 0) step.schedule.receives.clear();
    const mpi::ArrayStep array{&step};
    const auto parts = mpi::exchange_parts(MPI_COMM_WORLD, {&array, 1});
    ASSERT_FALSE(parts);
    EXPECT_NE(parts.error().message.find("array 0, step 5"), std::string::npos) << parts.error().message;
}

}  // namespace
}  // namespace reshard::conformance
