// Lists in buckets under a limit: bound all at once or bucket by bucket, with sources freed on the way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

std::vector<Item> mixed_items(Index ranks) {
    const std::string mesh = fmt::format("x={}", ranks);
    std::vector<Item> items;
    for (const auto& plan :
         {plan_of(mesh, "f32[12@x,7]", exchange, "f32[12,7@x]"),
          plan_of(mesh, "u16[5,6@x,3]", all_gather, "u16[5,6,3]"),
          plan_of(mesh, "f32[12,7]", zero_fill, "f32[12,7]{U:x}"), plan_of(mesh, "f64[9@x]", exchange, "f64[9]"),
          plan_of(mesh, "u8[3,5]", slice, "u8[3,5@x]")})
        if (plan) items.push_back({*plan, all_styles[items.size()], all_styles[all_styles.size() - 1 - items.size()]});
    return items;
}

TEST(Buckets, RunOneAfterTheOther) {
    const std::vector<Item> items = mixed_items(harness().ranks());
    ASSERT_EQ(items.size(), 5U);
    for (const bool polled : {false, true}) {
        expect_moves_everywhere(items, {3, polled, {{4, 2}, {0}, {1, 3}}});
        expect_moves_everywhere(items, {2, polled, {{3}, {2}, {1}, {0}, {4}}});
    }
}

// Runs one bucket alone. Its targets are allocated just before, and its sources freed just after.
void move_and_free(Executor& executor, std::size_t bucket, std::vector<Workbench>& benches, Backend& backend,
                   std::vector<std::unique_ptr<Memory>>& sources, std::vector<std::unique_ptr<Memory>>& targets) {
    std::vector<Buffers> buffers;
    const auto workspace = backend.allocate(executor.workspace_bytes());
    for (const std::size_t array : executor.bucket(bucket)) {
        auto target = backend.allocate(static_cast<Index>(benches[array].target.bytes.size()));
        ASSERT_TRUE(target && workspace);
        targets[array] = std::move(*target);
        std::ranges::copy(benches[array].target.bytes, targets[array]->bytes().begin());
        buffers.push_back({{}, targets[array]->bytes(), (*workspace)->bytes(), sources[array]->bytes()});
    }
    auto bound = executor.bind(bucket, buffers);
    ASSERT_TRUE(bound) << bound.error().message;
    auto ticket = (*bound)->start();
    ASSERT_TRUE(ticket) << ticket.error().message;
    const auto done = (*ticket)->wait();
    ASSERT_TRUE(done) << done.error().message;
    for (const std::size_t array : executor.bucket(bucket)) sources[array].reset();
}

void expect_moves_bucket_by_bucket(Backend& backend, const ListPlan& list, const MemoryPolicy& memory) {
    auto executor = Executor::prepare(judge(list, memory), backend);
    ASSERT_TRUE(executor) << executor.error().message;
    EXPECT_LE(executor->footprint_bytes(), memory.footprint_bytes_max.value_or(index_max));
    std::vector<Workbench> benches;
    std::vector<std::unique_ptr<Memory>> sources;
    for (std::size_t i = 0; i < list.plans.size(); ++i) {
        benches.emplace_back(Item{list.plans[i]}, backend.rank(), i + 1, 0);
        auto source = backend.allocate(static_cast<Index>(benches[i].source.bytes.size()));
        ASSERT_TRUE(source);
        sources.push_back(std::move(*source));
        std::ranges::copy(benches[i].source.bytes, sources[i]->bytes().begin());
    }
    std::vector<std::unique_ptr<Memory>> targets(list.plans.size());
    for (std::size_t bucket = 0; bucket < executor->bucket_count(); ++bucket) {
        move_and_free(*executor, bucket, benches, backend, sources, targets);
        if (testing::Test::HasFatalFailure()) return;
    }
    for (std::size_t i = 0; i < list.plans.size(); ++i) {
        std::ranges::copy(targets[i]->bytes(), benches[i].target.bytes.begin());
        EXPECT_EQ(benches[i].wrong(), "") << "rank " << backend.rank() << ", array " << i << '\n'
                                          << format(list.plans[i]);
    }
}

// Five arrays with any layouts at a time: under the tightest limit that the order allows, and each array alone, the
// last one first.
TEST(Buckets, RandomListsMoveUnderALimit) {
    const Index ranks = harness().ranks();
    std::vector<std::vector<std::string>> lists(static_cast<std::size_t>(test::cases(20)));
    std::uint64_t seed = 0;
    for (auto& list : lists)
        for (int i = 0; i < 5; ++i)
            list.push_back(harness().from_rank_0([&] { return test::random_question(++seed, ranks); }));
    harness().on_every_rank([&](Backend& backend) {
        for (const auto& questions : lists) {
            std::vector<Problem> problems;
            for (const std::string& question : questions) {
                const Problem problem = test::problem_of(question);
                // If summands arise on the way, the plan chooses which device keeps the value.
                const Index summands = summand_count(problem.target);
                if (summands == 1 || summands == summand_count(problem.source)) problems.push_back(problem);
            }
            constexpr Index staging = Index{1} << 20;
            const auto free = synthesize(std::span<const Problem>(problems));
            ASSERT_TRUE(free) << free.error().message;
            const Index limit = free->floor_bytes + free->floor_bytes / 8 + staging;
            const MemoryPolicy memory{.footprint_bytes_max = limit, .donate = true, .staging_bytes = staging};
            const auto made = synthesize(std::span<const Problem>(problems), {}, memory);
            // If the ends lie on several sets of devices, the floor may be out of reach.
            if (made) expect_moves_bucket_by_bucket(backend, made->list(), memory);
            if (testing::Test::HasFatalFailure()) return;
            ListPlan reversed{free->list().plans, {}};
            for (std::size_t i = problems.size(); i-- > 0;) reversed.buckets.push_back({i});
            expect_moves_bucket_by_bucket(backend, reversed, {.donate = true});
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

// The next bucket may write over memory that an earlier bucket has freed, if the caller allows it.
TEST(Buckets, ATargetMayLieWhereAnEarlierSourceWas) {
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const auto first = plan_of(mesh, "f32[24@x,24]", exchange, "f32[24,24@x]");
    const auto second = plan_of(mesh, "f32[24,24@x]", exchange, "f32[24@x,24]");
    ASSERT_TRUE(first && second);
    harness().on_every_rank([&](Backend& backend) {
        const ListPlan list{{*first, *second}, {{0}, {1}}};
        Workbench bench_one({*first}, backend.rank(), 1, 0, true);
        Workbench bench_two({*second}, backend.rank(), 2, 0, true);
        const std::size_t most = std::max(bench_one.source.bytes.size(), bench_two.target.bytes.size());
        auto shared = backend.allocate(static_cast<Index>(most));
        ASSERT_TRUE(shared);
        const auto source = (*shared)->bytes().first(bench_one.source.bytes.size());
        const auto target = (*shared)->bytes().first(bench_two.target.bytes.size());
        std::ranges::copy(bench_one.source.bytes, source.begin());
        std::vector<Buffers> buffers = {bench_one.buffers(), bench_two.buffers()};
        buffers[0].donated = source;
        buffers[1].target = target;
        auto keeping = Executor::prepare(judge(list), backend);
        ASSERT_TRUE(keeping) << keeping.error().message;
        EXPECT_EQ(keeping->bind(buffers).has_value(), source.empty() || target.empty());
        auto donating = Executor::prepare(judge(list, {.donate = true}), backend);
        ASSERT_TRUE(donating) << donating.error().message;
        auto bound = donating->bind(buffers);
        ASSERT_TRUE(bound) << bound.error().message;
        auto ticket = (*bound)->start();
        ASSERT_TRUE(ticket) << ticket.error().message;
        const auto done = (*ticket)->wait();
        ASSERT_TRUE(done) << done.error().message;
        std::ranges::copy(target, bench_two.target.bytes.begin());
        EXPECT_EQ(bench_one.wrong(), "");
        EXPECT_EQ(bench_two.wrong(), "");
    });
}

TEST(Buckets, WhatIsNoBucketIsRefused) {
    const std::vector<Item> items = mixed_items(harness().ranks());
    ASSERT_EQ(items.size(), 5U);
    harness().on_every_rank([&](Backend& backend) {
        const ListPlan twice{{items[0].plan, items[1].plan}, {{0, 1}, {0}}};
        const auto refused = Executor::prepare(judge(twice), backend);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::plan) << refused.error().message;
    });
    harness().on_every_rank([&](Backend& backend) {
        const ListPlan list{{items[0].plan, items[1].plan}, {{1}, {0}}};
        auto executor = Executor::prepare(judge(list), backend);
        ASSERT_TRUE(executor) << executor.error().message;
        ASSERT_EQ(executor->bucket_count(), 2U);
        EXPECT_EQ(executor->bucket(0)[0], 1U);
        const auto beyond = executor->bind(2, {});
        ASSERT_FALSE(beyond);
        EXPECT_EQ(beyond.error().code, Code::mismatch);
        EXPECT_FALSE(executor->bind(0, {}));
    });
}

// Ranks must not run buckets in different orders.
TEST(Buckets, RanksThatDisagreeOnBucketsAreTold) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank agrees with itself";
    const std::vector<Item> items = mixed_items(harness().ranks());
    ASSERT_EQ(items.size(), 5U);
    harness().on_every_rank([&](Backend& backend) {
        const ListPlan list{{items[0].plan, items[1].plan}, {{1}, {0}}};
        const ListPlan other{list.plans, {{0}, {1}}};
        auto executor = Executor::prepare(judge(backend.rank() == 0 ? list : other), backend);
        if (!executor) {
            EXPECT_EQ(executor.error().code, Code::mismatch) << executor.error().message;
            return;
        }
        // If ranks share a process, the first ranks get the error when they start.
        std::vector<Workbench> benches;
        std::vector<Buffers> buffers;
        for (std::size_t i = 0; i < 2; ++i) benches.emplace_back(Item{items[i].plan}, backend.rank(), i + 1, 0);
        for (Workbench& bench : benches) buffers.push_back(bench.buffers());
        auto bound = executor->bind(buffers);
        ASSERT_TRUE(bound);
        auto ticket = (*bound)->start();
        EXPECT_FALSE(ticket && (*ticket)->wait());
    });
}

}  // namespace
}  // namespace reshard::conformance
