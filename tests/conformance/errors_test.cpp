// Every rank reports an error, and nothing hangs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

Plan turning_plan() { return *plan_of(fmt::format("x={}", harness().ranks()), "f32[12@x,8]", exchange, "f32[12,8@x]"); }

// The error of prepare. If ranks cannot wait for each other in prepare, the error of the first run.
std::optional<Error> error_of(const Plan& plan, Backend& backend, const Execution& execution = {},
                              const MemoryPolicy& memory = {}) {
    auto executor = Executor::prepare(judge(plan, execution, {.memory = memory}), backend);
    if (!executor) return executor.error();
    Workbench bench({plan}, backend.rank(), 1, executor->workspace_bytes(), memory.donate);
    auto done = executor->run(bench.buffers());
    if (!done) return done.error();
    return std::nullopt;
}

TEST(Errors, RanksThatBringDifferentPlans) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
    const Plan plan = turning_plan();
    Plan other = plan;
    std::swap(other.source, other.target);
    other.steps.front().layout = other.target;
    harness().on_every_rank([&](Backend& backend) {
        const bool odd_one = backend.rank() == backend.size() - 1;
        const auto error = error_of(odd_one ? other : plan, backend);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, Code::mismatch) << error->message;
        EXPECT_NE(error->message.find("brings another plan"), std::string::npos) << error->message;
        expect_moves(backend, {{plan}});  // the backend still works
    });
}

// The plan is the same on all ranks, but the execution or the memory policy differs.
TEST(Errors, RanksThatBringDifferentExecutionsOrMemoryPolicies) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
    const Plan plan = turning_plan();
    const Index room = Index{1} << 24;
    const std::vector<std::pair<Execution, MemoryPolicy>> others = {{AsOneExchange{}, {}},
                                                                    {AsSteps{}, {.footprint_bytes_max = room}},
                                                                    {AsSteps{}, {.donate = true}},
                                                                    {AsSteps{}, {.staging_bytes = 64}}};
    harness().on_every_rank([&](Backend& backend) {
        for (const auto& [execution, memory] : others) {
            const bool odd_one = backend.rank() == backend.size() - 1;
            const auto error = odd_one ? error_of(plan, backend, execution, memory) : error_of(plan, backend);
            ASSERT_TRUE(error);
            EXPECT_EQ(error->code, Code::mismatch) << error->message;
            EXPECT_NE(error->message.find("execution or memory policy"), std::string::npos) << error->message;
            expect_moves(backend, {{plan}});  // the backend still works
        }
    });
}

TEST(Errors, OneRankCannotLowerItsPlan) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank has no peer to tell";
    const Plan plan = turning_plan();
    Plan broken = plan;
    broken.steps.front().kind = all_gather;
    harness().on_every_rank([&](Backend& backend) {
        const bool odd_one = backend.rank() == 0;
        const auto error = error_of(odd_one ? broken : plan, backend);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, Code::step) << error->message;
        EXPECT_NE(error->message.find("not a all_gather"), std::string::npos) << error->message;
        if (!odd_one) {
            EXPECT_TRUE(error->message.starts_with("rank 0 could not prepare: ")) << error->message;
        }
        expect_moves(backend, {{plan}});
    });
}

TEST(Errors, AMeshLargerThanTheBackend) {
    const auto plan = plan_of(fmt::format("x={}", harness().ranks() + 1), "f32[12@x]", all_gather, "f32[12]");
    ASSERT_TRUE(plan);
    harness().on_every_rank([&](Backend& backend) {
        const auto error = error_of(*plan, backend);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, Code::mismatch) << error->message;
    });
}

TEST(Errors, BuffersThatAreTooSmallOrOverlap) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        Workbench bench({plan}, backend.rank(), 1, executor->workspace_bytes());
        const Buffers right = bench.buffers();
        if (right.source.empty() || right.target.empty()) return;
        const auto code_of = [&](Buffers buffers) {
            const auto bound = executor->bind(std::span(&buffers, 1));
            return bound ? std::nullopt : std::optional(bound.error().code);
        };
        EXPECT_EQ(code_of({right.source.subspan(1), right.target, right.workspace}), Code::mismatch);
        EXPECT_EQ(code_of({right.source, right.target.subspan(1), right.workspace}), Code::mismatch);
        EXPECT_EQ(code_of({right.target, right.target, right.workspace}), Code::mismatch);
        EXPECT_EQ(code_of(right), std::nullopt);
        EXPECT_FALSE(executor->bind(std::span<const Buffers>()));
    });
}

// A donated source must be writable and not shared. Sources that are only read may share memory.
TEST(Errors, ADonatedSourceThatIsReadOnlyOrShared) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        auto kept = Executor::prepare(
            judge(choose_executions(in_one_bucket(std::vector{plan, plan}), backend.capabilities())), backend);
        auto donated = Executor::prepare(
            judge(choose_executions(in_one_bucket(std::vector{plan, plan}), backend.capabilities(), {.donate = true}),
                  {.donate = true}),
            backend);
        ASSERT_TRUE(kept && donated);
        Workbench one({plan}, backend.rank(), 1, 64, true);
        Workbench two({plan}, backend.rank(), 2, 64, true);
        if (one.source.bytes.empty() || one.target.bytes.empty()) return;
        const auto error_with = [&](Executor& executor, const Buffers& first, const Buffers& second) {
            const std::array<Buffers, 2> both = {first, second};
            const auto bound = executor.bind(both);
            return bound ? std::string() : std::string(name(bound.error().code)) + ": " + bound.error().message;
        };
        const Buffers first = one.buffers();
        const Buffers second = two.buffers();
        EXPECT_EQ(error_with(*donated, first, second), "");
        EXPECT_EQ(error_with(*kept, first, second), "");
        const Buffers read_only{two.source.bytes, second.target, second.workspace};
        EXPECT_EQ(error_with(*kept, first, read_only), "");
        EXPECT_EQ(
            error_with(*donated, first, read_only),
            "mismatch: the source of array 1 is donated and may be written: it must be given as Buffers::donated");
        const Buffers shared{{}, second.target, second.workspace, first.donated};
        EXPECT_EQ(error_with(*kept, first, shared), "");
        EXPECT_EQ(error_with(*donated, first, shared),
                  "mismatch: the donated source of array 0 and the donated source of array 1 overlap in memory");
        std::vector<std::byte> memory(4096);
        const Buffers onto_itself{{}, memory, first.workspace, memory};
        EXPECT_EQ(error_with(*donated, onto_itself, second),
                  "mismatch: the donated source of array 0 and the target of array 0 overlap in memory");
        EXPECT_NE(error_with(*donated, first, {{}, second.target, second.workspace, second.donated.subspan(1)}), "");
    });
}

TEST(Errors, StoragesThatCannotBe) {
    const Plan plan = turning_plan();
    const auto code_of = [&](const Storages& storages) {
        const auto lowered = lower(plan, 0, storages);
        return lowered ? std::nullopt : std::optional(lowered.error().code);
    };
    EXPECT_EQ(code_of({Storage{0, {1}}, std::nullopt}), Code::mismatch);
    EXPECT_EQ(code_of({Storage{0, {-8, 1}}, std::nullopt}), Code::mismatch);
    EXPECT_EQ(code_of({Storage{-1, {8, 1}}, std::nullopt}), Code::mismatch);
    EXPECT_EQ(code_of({std::nullopt, Storage{0, {0, 1}}}), Code::mismatch);
    EXPECT_EQ(code_of({std::nullopt, Storage{index_max, {8, 1}}}), Code::overflow);
    EXPECT_EQ(code_of({std::nullopt, Storage{index_max / 2, {8, 1}}}), Code::overflow);
}

// One run at a time, and no run after a failure.
TEST(Errors, OneRunAtATime) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        Workbench bench({plan}, backend.rank(), 1, executor->workspace_bytes());
        const Buffers buffers = bench.buffers();
        auto bound = executor->bind(std::span(&buffers, 1));
        ASSERT_TRUE(bound);
        auto first = (*bound)->start();
        ASSERT_TRUE(first);
        const auto second = (*bound)->start();
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, Code::mismatch);
        EXPECT_TRUE((*first)->wait());
        EXPECT_EQ(bench.wrong(), "");
    });
}

// All other tests rest on this comparison: if one transfer shifts by one row, on both ends, it must report a
// difference.
TEST(Errors, ACorruptedTransferIsSeen) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank sends nothing";
    const auto plan = plan_of(fmt::format("x={}", harness().ranks()), "u16[24@x,8]", all_gather, "u16[24,8]");
    ASSERT_TRUE(plan);
    harness().on_every_rank([&](Backend& backend) {
        auto lowered = lower(*plan, backend.rank());
        ASSERT_TRUE(lowered);
        Schedule& schedule = lowered->steps.front().schedule;
        schedule.kind = exchange;
        const auto shorten = [](Transfer& transfer) { --transfer.box[0].end; };
        for (Transfer& send : schedule.sends) shorten(send);
        for (Transfer& receive : schedule.receives) {
            if (receive.peer != backend.rank()) shorten(receive);
        }
        auto prepared = backend.prepare({*lowered});
        ASSERT_TRUE(prepared);
        Workbench bench({*plan}, backend.rank(), 1, 0);
        const Buffers buffers = bench.buffers();
        auto bound = (*prepared)->bind(std::span(&buffers, 1));
        ASSERT_TRUE(bound);
        ASSERT_TRUE((*(*bound)->start())->wait());
        EXPECT_NE(bench.wrong(), "");
    });
}

// A backend may find a mismatch when it prepares, or when it runs.
Result<void> prepared_and_run(Backend& backend, const RankPlan& lowered, const Buffers& buffers) {
    auto prepared = backend.prepare({lowered});
    if (!prepared) return tl::unexpected(prepared.error());
    auto bound = (*prepared)->bind(std::span(&buffers, 1));
    if (!bound) return tl::unexpected(bound.error());
    auto run = (*bound)->start();
    return run ? (*run)->wait() : tl::unexpected(run.error());
}

// Sends that are shorter or longer than the peer expects: the rank that finds it names the step and the rank.
TEST(Errors, ASendAndItsReceiveDiffer) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank sends nothing";
    const auto plan = plan_of(fmt::format("x={}", harness().ranks()), "u16[24@x,8]", all_gather, "u16[24,8]");
    ASSERT_TRUE(plan);
    for (const bool longer : {false, true}) {
        harness().on_every_rank([&](Backend& backend) {
            auto lowered = lower(*plan, backend.rank());
            ASSERT_TRUE(lowered);
            Schedule& schedule = lowered->steps.front().schedule;
            schedule.kind = exchange;
            std::vector<Transfer>& changed = longer ? schedule.receives : schedule.sends;
            const bool at_fault = longer ? backend.rank() == 1 : backend.rank() == 0;
            for (Transfer& transfer : changed) {
                if (at_fault && transfer.peer != backend.rank()) --transfer.box[0].end;
            }
            Workbench bench({*plan}, backend.rank(), 1, 0);
            const auto done = prepared_and_run(backend, *lowered, bench.buffers());
            const bool failed = !done;
            const bool named = failed && done.error().message.find("step 1") != std::string::npos &&
                               done.error().message.find("rank ") != std::string::npos;
            EXPECT_GE(harness().count_true(backend, failed), 1);
            EXPECT_GE(harness().count_true(backend, named), 1);
            if (failed) {
                EXPECT_TRUE(done.error().code == Code::backend || done.error().code == Code::mismatch);
            }
        });
    }
}

}  // namespace
}  // namespace reshard::conformance
