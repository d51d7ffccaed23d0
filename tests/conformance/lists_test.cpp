// Storages, plans of several steps, lists of arrays, and the ways to run them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/check.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

struct Stop {
    StepKind kind;
    const char* layout;
};

std::optional<Plan> plan_through(std::string_view mesh_text, std::string_view source, std::span<const Stop> stops) {
    const auto mesh = parse_mesh(mesh_text);
    const auto from = mesh ? parse_layout(*mesh, source) : tl::unexpected(mesh.error());
    if (!from) return std::nullopt;
    Plan plan{*from, *from, {}};
    for (const Stop& stop : stops) {
        const auto layout = parse_layout(*mesh, stop.layout);
        if (!layout) return std::nullopt;
        plan.steps.push_back({stop.kind, *layout});
        plan.target = *layout;
    }
    const auto verdict = check(plan);
    EXPECT_TRUE(verdict) << verdict.error().message << '\n' << format(plan);
    if (!verdict) return std::nullopt;
    return plan;
}

// Plans with slices at the start, in the middle and at the end, with tiles that grow and shrink, and with a zero fill
// that is reduced again.
std::vector<Plan> plans_of_several_steps() {
    std::vector<std::optional<Plan>> plans;
    constexpr Stop to_and_fro[] = {{all_to_all, "f32[8,8@x]"}, {all_to_all, "f32[8@x,8]"}, {all_gather, "f32[8,8]"}};
    constexpr Stop slices[] = {{slice, "f32[8@x,8]"}, {all_to_all, "f32[8,8@x]"}, {slice, "f32[8@y,8@x]"}};
    constexpr Stop only_slices[] = {{slice, "f32[8@x,8]"}, {slice, "f32[8@x,8@y]"}};
    constexpr Stop large[] = {{all_gather, "f32[8]"},   {slice, "f32[8@y]"},    {all_gather, "f32[8]"},
                              {slice, "f32[8@x]"},      {all_gather, "f32[8]"}, {slice, "f32[8@(y,x)]"},
                              {permute, "f32[8@(x,y)]"}};
    constexpr Stop sums[] = {{zero_fill, "f32[6,4]{U:x}"}, {reduce_scatter, "f32[6@x,4]"}, {exchange, "f32[6@y,4@x]"}};
    constexpr Stop uneven[] = {{exchange, "u16[7@y,5]"},
                               {all_gather, "u16[7,5]"},
                               {exchange, "u16[7,5@(x,y)]"},
                               {exchange, "u16[7@x,5]"},
                               {exchange, "u16[7@(y,x),5]"}};
    plans.push_back(plan_through("x=2,y=2", "f32[8@x,8]", to_and_fro));
    plans.push_back(plan_through("x=2,y=2", "f32[8,8]", slices));
    plans.push_back(plan_through("x=2,y=2", "f32[8,8]", only_slices));
    plans.push_back(plan_through("x=2,y=2", "f32[8@x]", large));
    plans.push_back(plan_through("x=2,y=2", "f32[6,4]", sums));
    plans.push_back(plan_through("x=2,y=2", "u16[7@(x,y),5]", uneven));
    plans.push_back(plan_through("x=2,y=2", "f32[8@x]", {}));
    std::vector<Plan> found;
    for (const auto& plan : plans) {
        if (!plan) return {};
        found.push_back(*plan);
    }
    return found;
}

TEST(Lists, PlansOfSeveralSteps) {
    if (harness().ranks() < 4) GTEST_SKIP() << "the plans are for four devices";
    const std::vector<Plan> plans = plans_of_several_steps();
    ASSERT_FALSE(plans.empty());
    for (std::size_t p = 0; p < plans.size(); ++p) {
        for (std::size_t i = 0; i < all_styles.size(); ++i)
            expect_moves_everywhere({{plans[p], all_styles[i], all_styles[(i + 1) % all_styles.size()]}},
                                    {2, false, {}, (p + i) % 2 == 0});
    }
}

// Arrays that run together, each with its part of the workspace, beside an array with sums and arrays that run alone.
TEST(Lists, ArraysRunTogether) {
    if (harness().ranks() < 4) GTEST_SKIP() << "the plans are for four devices";
    const std::vector<Plan> plans = plans_of_several_steps();
    ASSERT_EQ(plans.size(), 7U);
    std::vector<Item> items;
    for (std::size_t i = 0; i < 4 * plans.size(); ++i)
        items.push_back(
            {plans[i % plans.size()], all_styles[i % all_styles.size()], all_styles[(i / 2 + 1) % all_styles.size()]});
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < 2 * plans.size(); ++i) first.push_back(i);
    for (const bool donate : {false, true}) {
        expect_moves_everywhere(items, {2, false, {}, donate, {first, {14, 15, 16}, {20, 19, 17}}});
        expect_moves_everywhere(items, {1, true, {}, donate, {{27, 0, 14, 7, 21, 3, 10}}});
    }
}

TEST(Lists, EveryStorageOnBothSides) {
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const auto turned = plan_of(mesh, "f32[5@x,6,3]", exchange, "f32[5,6@x,3]");
    const auto gathered = plan_of(mesh, "u16[5,6@x,3]", all_gather, "u16[5,6,3]");
    ASSERT_TRUE(turned && gathered);
    std::vector<Item> items;
    for (const Style source : all_styles) {
        for (const Style target : all_styles) {
            items.push_back({*turned, source, target});
            items.push_back({*gathered, source, target});
        }
    }
    expect_moves_everywhere(items);
}

// Each rank may store its tile in its own way. A gather that is regular on some ranks only must not count as regular.
TEST(Lists, StoragesThatDifferFromRankToRank) {
    const auto plan = plan_of(fmt::format("x={}", harness().ranks()), "f32[8@x,3]", all_gather, "f32[8,3]");
    ASSERT_TRUE(plan);
    harness().on_every_rank([&](Backend& backend) {
        const Style own = all_styles[static_cast<std::size_t>(backend.rank()) % all_styles.size()];
        expect_moves(backend, {{*plan, own, own}});
    });
}

TEST(Lists, RunsAreRepeatedAndPolled) {
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const auto plan = plan_of(mesh, "f32[12@x,7]", exchange, "f32[12,7@x]");
    const auto sum = plan_of(mesh, "f32[12,7]", zero_fill, "f32[12,7]{U:x}");
    ASSERT_TRUE(plan && sum);
    expect_moves_everywhere({{*plan}, {*sum}, {*plan}}, {5, true});
    expect_moves_everywhere({{*plan}, {*sum}, {*plan}}, {5, false});
}

TEST(Lists, AnEmptyListRuns) { expect_moves_everywhere({}); }

// Two executors in flight at once, started in one order and waited for in the other.
TEST(Lists, ExecutorsSideBySide) {
    const std::string mesh = fmt::format("x={}", harness().ranks());
    const Item first{*plan_of(mesh, "f32[12@x,7]", exchange, "f32[12,7@x]")};
    const Item second{*plan_of(mesh, "f32[12,7@x]", exchange, "f32[12@x,7]")};
    harness().on_every_rank([&](Backend& backend) {
        auto one = Executor::prepare(judge(first.plan, backend.capabilities()), backend);
        auto two = Executor::prepare(judge(second.plan, backend.capabilities()), backend);
        ASSERT_TRUE(one && two);
        Workbench bench_one(first, backend.rank(), 1, one->workspace_bytes());
        Workbench bench_two(second, backend.rank(), 2, two->workspace_bytes());
        const Buffers buffers_one = bench_one.buffers();
        const Buffers buffers_two = bench_two.buffers();
        auto bound_one = one->bind(std::span(&buffers_one, 1));
        auto bound_two = two->bind(std::span(&buffers_two, 1));
        ASSERT_TRUE(bound_one && bound_two);
        auto run_one = (*bound_one)->start();
        auto run_two = (*bound_two)->start();
        ASSERT_TRUE(run_one && run_two);
        EXPECT_TRUE((*run_two)->wait());
        EXPECT_TRUE((*run_one)->wait());
        EXPECT_EQ(bench_one.wrong(), "");
        EXPECT_EQ(bench_two.wrong(), "");
    });
}

// The executor and the bound run may be destroyed while a run is in flight.
TEST(Lists, ARunOutlivesWhatStartedIt) {
    const auto plan = plan_of(fmt::format("x={}", harness().ranks()), "f32[12@x,7]", exchange, "f32[12,7@x]");
    ASSERT_TRUE(plan);
    harness().on_every_rank([&](Backend& backend) {
        Workbench bench({*plan}, backend.rank(), 1, 0);
        const Buffers buffers = bench.buffers();
        auto executor = Executor::prepare(judge(*plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        auto ticket = (*executor->bind(std::span(&buffers, 1)))->start();
        executor = fail(Code::usage, "dropped");
        ASSERT_TRUE(ticket);
        EXPECT_TRUE((*ticket)->wait());
        EXPECT_EQ(bench.wrong(), "");
    });
}

TEST(Lists, StepsAreTimed) {
    const auto plan = plan_of(fmt::format("x={}", harness().ranks()), "f32[12@x,7]", exchange, "f32[12,7@x]");
    ASSERT_TRUE(plan);
    harness().on_every_rank([&](Backend& backend) {
        const Item item{*plan};
        auto executor = Executor::prepare(judge(*plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        Workbench bench(item, backend.rank(), 1, executor->workspace_bytes());
        const Buffers buffers = bench.buffers();
        auto bound = executor->bind(std::span(&buffers, 1));
        ASSERT_TRUE(bound);
        ASSERT_TRUE((*(*bound)->start())->wait());
        const std::vector<double> seconds = (*bound)->step_seconds();
        ASSERT_EQ(seconds.size(), 1U);
        EXPECT_GT(seconds.front(), 0.0);
    });
}

TEST(Lists, MemoryIsHandedOut) {
    harness().on_every_rank([](Backend& backend) {
        auto memory = backend.allocate(12345);
        ASSERT_TRUE(memory);
        EXPECT_EQ((*memory)->bytes().size(), 12345U);
        EXPECT_TRUE(backend.allocate(0));
        EXPECT_FALSE(backend.allocate(-1));
    });
}

}  // namespace
}  // namespace reshard::conformance
