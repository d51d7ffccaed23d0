// Footprint limits: a plan that needs more memory runs in pieces or as one exchange, and holds what the verdict states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/check.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

// Sums over all ranks, then gathers. The tile between the two steps is workspace. No step moves dimension 1.
Plan reduce_then_gather(Index ranks, Index rows, Index columns) {
    const std::string mesh = fmt::format("x={}", ranks);
    const auto layout = [&](const std::string& text) { return parse_layout(parse_mesh(mesh).value(), text).value(); };
    const Layout source = layout(fmt::format("f32[{},{}]{{U:x}}", rows, columns));
    const Layout between = layout(fmt::format("f32[{}@x,{}]", rows, columns));
    const Layout target = layout(fmt::format("f32[{},{}]", rows, columns));
    return {source, target, {{StepKind::reduce_scatter, between}, {StepKind::all_gather, target}}};
}

// The same with a turn after it. Every dimension moves, so a split must cut blocks that no layout cuts.
Plan reduce_then_turn(Index ranks, Index rows, Index columns) {
    Plan plan = reduce_then_gather(ranks, rows, columns);
    plan.target = parse_layout(plan.source.mesh, fmt::format("f32[{},{}@x]", rows, columns)).value();
    plan.steps[1] = {StepKind::all_to_all, plan.target};
    return plan;
}

constexpr Index staging_bytes_max = Index{1} << 20;

void expect_pieces(const Plan& plan) {
    ASSERT_TRUE(check(plan).has_value());
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    const Index whole = check(plan)->footprint_bytes - ends;
    ASSERT_GT(whole, 0);
    harness().on_every_rank([&](Backend& backend) {
        // Staging comes on top. The test checks that the workspace shrinks to the remaining memory.
        for (const Index share : {Index{1}, Index{2}, Index{5}, Index{30}}) {
            SCOPED_TRACE(fmt::format("1/{} of the workspace", share));
            // The limit is the same on all ranks, even if they would stage different amounts.
            const MemoryPolicy memory{.footprint_bytes_max =
                                          ends + whole / share + (share == 1 ? staging_bytes_max : 0)};
            for (const Style style : {Style::row_major, Style::column_padded}) {
                const Item item{plan, style, style};
                auto executor = Executor::prepare(judge(plan, backend.capabilities(), {.memory = memory}), backend,
                                                  storages_of(item, backend.rank()));
                if (!executor) {
                    // A rank may need staging that does not fit under the limit. The other ranks get the error.
                    EXPECT_EQ(executor.error().code, Code::infeasible) << executor.error().message;
                    continue;
                }
                EXPECT_LE(executor->workspace_bytes(), whole / share);
                Workbench bench(item, backend.rank(), 7, executor->workspace_bytes());
                const Buffers buffers = bench.buffers();
                auto bound = executor->bind({&buffers, 1});
                ASSERT_TRUE(bound) << bound.error().message;
                auto ticket = (*bound)->start();
                ASSERT_TRUE(ticket) << ticket.error().message;
                const auto done = (*ticket)->wait();
                ASSERT_TRUE(done) << done.error().message;
                EXPECT_EQ(bench.wrong(), "");
                if (share > 1) {
                    EXPECT_GE(executor->piece_count(), static_cast<std::size_t>(share));
                }
            }
        }
    });
}

// A plan is not cut if its tiles fit into the donated source.
TEST(Limits, ADonatedSourceKeepsAPlanWhole) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "one rank reduces nothing";
    Plan plan = reduce_then_turn(ranks, 2 * ranks, 30 * ranks);
    plan.target = parse_layout(plan.source.mesh, fmt::format("f32[{},{}]", 2 * ranks, 30 * ranks)).value();
    plan.steps.push_back({StepKind::all_gather, plan.target});
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    const auto donated = check(plan, {.memory = {.footprint_bytes_max = ends, .donate = true}});
    ASSERT_TRUE(donated) << donated.error().message;
    EXPECT_EQ(donated->footprint_bytes, ends);
    EXPECT_FALSE(check(plan, {.memory = {.footprint_bytes_max = ends}}));
    harness().on_every_rank([&](Backend& backend) {
        for (const Index staging : {Index{0}, staging_bytes_max}) {
            auto executor =
                Executor::prepare(judge(plan, backend.capabilities(),
                                        {.memory = {.footprint_bytes_max = ends + staging, .donate = true}}),
                                  backend);
            if (!executor) {  // staging does not fit under the limit, on this rank or another
                EXPECT_EQ(staging, 0) << executor.error().message;
                continue;
            }
            EXPECT_EQ(executor->workspace_bytes(), 0);
            EXPECT_EQ(executor->piece_count(), 1U);
            EXPECT_EQ(executor->footprint_bytes(), ends + executor->staging_bytes());
            Workbench bench({plan}, backend.rank(), 7, 0, true);
            const auto done = executor->run(bench.buffers());
            ASSERT_TRUE(done) << done.error().message;
            EXPECT_EQ(bench.wrong(), "");
        }
    });
}

TEST(Limits, APlanThatReducesRunsInPieces) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "one rank reduces nothing";
    expect_pieces(reduce_then_gather(ranks, 4 * ranks, 30));
}

TEST(Limits, APlanThatMovesEveryDimensionRunsInPieces) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "one rank reduces nothing";
    expect_pieces(reduce_then_turn(ranks, ranks, 30 * ranks));
}

}  // namespace
}  // namespace reshard::conformance
