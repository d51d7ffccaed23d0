// A wait ends if its caller interrupts it, the other ranks learn of it, and the backend still works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "move.hpp"
#include "src/base/interrupt.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using Clock = std::chrono::steady_clock;

constexpr auto promptly = std::chrono::seconds(100);  // less than any timeout of a wait for a rank

Plan turning_plan() {
    return *plan_of(fmt::format("x={}", harness().ranks()), "f32[96@x,64]", exchange, "f32[96,64@x]");
}

// The first rank is interrupted. The other ranks come later, and succeed if they already have all its data.
TEST(Interrupts, EndARun) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor) << executor.error().message;
        Workbench bench({plan}, backend.rank(), 1, executor->workspace_bytes());
        const auto run = [&] {
            const auto begin = Clock::now();
            auto done = executor->run(bench.buffers());
            EXPECT_LT(Clock::now() - begin, promptly);
            return done;
        };
        if (backend.rank() == 0) {
            const Interrupt interrupt([] { return true; });
            const auto done = run();
            EXPECT_EQ(done ? "" : done.error().message, "the wait was interrupted");
            EXPECT_FALSE(run());  // it must be prepared again
        }
        harness().count_true(backend, true);
        if (backend.rank() > 0) {
            const auto done = run();
            EXPECT_TRUE(done || done.error().code == Code::backend);
            EXPECT_TRUE(!done || bench.wrong().empty());
        }
        expect_moves(backend, {{plan}});
    });
}

// An interrupt also ends an agreement, on backends whose ranks wait in one.
TEST(Interrupts, EndAnAgreement) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        if (backend.name() == "local") GTEST_SKIP() << "ranks that share a thread cannot wait";
        for (const Index away : {backend.size() - 1, Index{0}}) {
            const Index interrupted = backend.size() - 1 - away;
            Result<void> agreed;
            const auto meet = [&] {
                const auto begin = Clock::now();
                std::optional<Interrupt> interrupt;
                if (backend.rank() == interrupted) interrupt.emplace([] { return true; });
                agreed = backend.agree(7);
                EXPECT_LT(Clock::now() - begin, promptly);
            };
            if (backend.rank() != away) meet();
            harness().count_true(backend, true);
            if (backend.rank() == away) meet();  // it learns that the call has ended
            ASSERT_FALSE(agreed);
            EXPECT_EQ(agreed.error().message, fmt::format("rank {} was interrupted in Backend::agree", interrupted));
            expect_moves(backend, {{plan}});
        }
    });
}

// A rank that has failed does not wait until the other ranks know.
TEST(Interrupts, EndAFailureOfOneRank) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank waits for nobody";
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        if (backend.name() == "local") GTEST_SKIP() << "ranks that share a thread cannot wait";
        for (const Index failed : {Index{0}, backend.size() - 1}) {
            Result<void> agreed;
            if (backend.rank() == failed) {
                const Interrupt interrupt([] { return true; }, true);
                agreed = backend.agree(fail(Code::io, "no such file"));
            }
            harness().count_true(backend, true);
            if (backend.rank() != failed) agreed = backend.agree(7);
            ASSERT_FALSE(agreed);
            EXPECT_EQ(agreed.error().code, Code::io);
            EXPECT_NE(agreed.error().message.find("no such file"), std::string::npos) << agreed.error().message;
            expect_moves(backend, {{plan}});
        }
    });
}

}  // namespace
}  // namespace reshard::conformance
