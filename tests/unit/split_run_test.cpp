#include "src/plan/split_run.hpp"

#include <gtest/gtest.h>

#include <set>

#include "reshard/planner/list.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "src/judge/execution.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const char* text) { return *parse_layout(mesh, text); }

Plan three_steps() {
    Plan plan{at("f32[12@x,10]"), at("f32[12@y,10]"), {}};
    plan.steps = {{StepKind::slice, at("f32[12@(x,y),10]")},
                  {StepKind::permute, at("f32[12@(y,x),10]")},
                  {StepKind::all_gather, at("f32[12@y,10]")}};
    return plan;
}

TEST(SplitRunUnit, TheFewestPiecesThatFit) {
    const Plan plan = three_steps();
    EXPECT_EQ(workspace_bytes(plan, AsSteps{}, false), 80);
    EXPECT_EQ(split_within(plan, 79), even_split(1, 10, 9));
    EXPECT_EQ(split_within(plan, 40), even_split(1, 10, 5));
    EXPECT_EQ(split_within(plan, 8), even_split(1, 10, 1));
    EXPECT_EQ(split_within(plan, 7), std::nullopt);
    for (Index room = 8; room < 80; ++room) {
        const auto split = split_within(plan, room);
        ASSERT_TRUE(split.has_value());
        EXPECT_TRUE(can_split(plan, *split));
        EXPECT_TRUE(keeps_blocks(*split, plan));
        EXPECT_LE(workspace_bytes(plan, *split, false), room);
        EXPECT_EQ(piece_count(*split), ceil_divide(10, largest_extent(*split)));
    }
}

// A plan that moves every dimension. The finest tiles have 4 x 4 blocks of 2 x 3 indices.
Plan all_moved() {
    Plan plan{at("f32[12@x,18]"), at("f32[12,18@y]"), {}};
    plan.steps = {{StepKind::all_to_all, at("f32[12,18@x]")},
                  {StepKind::slice, at("f32[12@y,18@x]")},
                  {StepKind::exchange, at("f32[12,18@y]")}};
    return plan;
}

TEST(SplitRunUnit, BlocksThatNoLayoutCuts) {
    const Plan plan = all_moved();
    const Index workspace = workspace_bytes(plan, AsSteps{}, false);
    EXPECT_EQ(piece_count(split_within(plan, workspace - 1).value()), 2);
    EXPECT_EQ(split_within(plan, workspace / 3 - 1), std::nullopt);
    Plan fine{at("f32[6@x,9]"), at("f32[6@y,9@x]"), {{StepKind::exchange, at("f32[6@y,9@x]")}}};
    EXPECT_EQ(split_within(fine, 1), std::nullopt);  // blocks of one index, and 9 over 2 does not divide
    // Blocks of 6 x 9 / 3 indices hold blocks of 1 x 3. A split fails if they do not, or if a piece is empty.
    EXPECT_TRUE(can_split(plan, even_split(1, 1, 1)));
    for (const Split& split :
         {even_split(0, 12, 1), even_split(1, 2, 1), Split{1, 3, {4}}, Split{1, 3, {0, 3}}, Split{1, 3, {2, 2, 3}},
          Split{1, 3, {2}}, Split{1, 3, {}}, even_split(2, 1, 1), Split{1, 3, {1, 3}, {1}}, Split{1, 3, {1, 3}, {1, 1}},
          Split{1, 3, {1, 3}, {1, 2}}, Split{1, 0, {0}}}) {
        EXPECT_EQ(can_split(plan, split).error().code, Code::plan);
        EXPECT_EQ(check(plan, split).error().code, Code::plan);
    }
}

TEST(SplitRunUnit, EveryPieceIsAPlanAndTheirTilesMakeUpTheWhole) {
    const auto expect_whole = [](const Plan& plan, const Split& split) {
        ASSERT_TRUE(check(plan).has_value());
        for (Index device = 0; device < device_count(plan.source); ++device) {
            const Tile whole = tile(plan.source, device);
            std::set<Index> written;
            for (std::size_t piece = 0; piece < split.ends.size(); ++piece) {
                const Plan part = plan_of_piece(plan, split, piece);
                const auto verdict = check(part);
                ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
                const Tile box = tile(part.source, device);
                const Storage storage = storage_of(row_major(whole), split, piece);
                ASSERT_EQ(box.size(), whole.size() + 1);
                for (Index i = 0; i < box[0].size(); ++i)
                    for (Index j = 0; j < box[1].size(); ++j)
                        for (Index k = 0; k < box[2].size(); ++k) {
                            const Index place = storage.offset + i * storage.strides[0] + j * storage.strides[1] +
                                                k * storage.strides[2];
                            // The global index: the index in its block, after the blocks before it.
                            const Index cut = (piece == 0 ? 0 : split.ends[piece - 1]) + (split.dim == 0 ? j : k);
                            const Index row = split.dim == 0 ? i * split.block + cut : i;
                            const Index column = split.dim == 0 ? k : j * split.block + cut;
                            EXPECT_EQ(place, row * whole[1].size() + column);
                            EXPECT_TRUE(written.insert(place).second);
                        }
            }
            EXPECT_EQ(static_cast<Index>(written.size()), count(whole));
        }
    };
    expect_whole(three_steps(), even_split(1, 10, 3));
    expect_whole(three_steps(), {1, 10, {1, 7, 10}});
    expect_whole(three_steps(), even_split(0, 2, 1));
    expect_whole(all_moved(), {1, 3, {1, 3}, {1, 0}, true});
    expect_whole(all_moved(), even_split(0, 2, 1));
}

TEST(SplitRunUnit, TheJudgeStatesTheFootprintOfTheExecution) {
    const Plan plan = three_steps();
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    const Limits limits{.memory = {.footprint_bytes_max = ends + 40}};
    EXPECT_EQ(check(plan, limits).error().code, Code::infeasible);
    EXPECT_EQ(check(plan, even_split(1, 10, 5), limits)->footprint_bytes, ends + 40);
    EXPECT_EQ(check(plan, even_split(1, 10, 6), limits).error().code, Code::infeasible);
    EXPECT_EQ(check(plan, AsOneExchange{}, limits)->footprint_bytes, ends);
    // Two overlapping pieces have a workspace each, and the largest piece counts.
    EXPECT_EQ(check(plan, Split{1, 10, {1, 5, 10}, {}, true})->footprint_bytes, ends + 80);
    EXPECT_EQ(check(plan, Split{1, 10, {2, 4, 6, 8, 10}, {}, true}, limits)->footprint_bytes, ends + 32);
    EXPECT_EQ(check(plan, Split{1, 10, {10}, {}, true})->footprint_bytes, ends + 80);
}

// A step that copies can be cut anywhere, whether sizes divide or not.
TEST(SplitRunUnit, PiecesThatOverlapMayCutBlocksOfOneStep) {
    const Plan uneven{at("f32[7@x,10]"), at("f32[7,10@y]"), {{StepKind::exchange, at("f32[7,10@y]")}}};
    for (const Index block : {1, 2, 3, 4, 7}) EXPECT_TRUE(check(uneven, Split{0, block, {block}, {}, true}));
    EXPECT_FALSE(check(uneven, Split{0, 8, {8}, {}, true}));
    EXPECT_FALSE(check(uneven, Split{0, 4, {4}}));
    const Plan plan = all_moved();
    EXPECT_EQ(check(plan, Split{0, 12, {6, 12}, {}, true}).error().message,
              "pieces of a plan that has several steps need blocks that no layout on the way cuts; along dimension 0 "
              "blocks of 12 indices are cut");
    const Plan sums{at("f32[12]{U:x}"), at("f32[12@x]"), {{StepKind::reduce_scatter, at("f32[12@x]")}}};
    EXPECT_TRUE(check(sums, Split{0, 6, {1, 6}, {}, true}));
    EXPECT_EQ(check(sums, Split{0, 12, {6, 12}, {}, true}).error().message.substr(0, 40),
              "pieces of a plan that reduces or fills n");
    ListPlan list = in_one_bucket({sums, plan});
    list.executions = {Split{0, 6, {1, 6}, {}, true}, AsSteps{}};
    EXPECT_EQ(check(list).error().code, Code::plan);
}

TEST(SplitRunUnit, MorePiecesThanASplitHasAreRefused) {
    EXPECT_TRUE(check_pieces(even_pieces(0, Index{1} << 62, split_pieces_max)));
    const auto refused = check_pieces(even_pieces(0, Index{1} << 62, split_pieces_max + 1));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("at most 1048576"), std::string::npos) << refused.error().message;
}

TEST(SplitRunUnit, APieceOfATile) {
    const Tile whole{{{{0, 12}}}, {{{0, 5}, {7, 9}}}};
    const Split slabs{0, 12, {5, 12}};
    EXPECT_EQ(piece_of(whole, slabs, 1), (Tile{{{{5, 12}}}, {{{0, 5}, {7, 9}}}}));
    const Split parts{0, 4, {1, 4}};
    EXPECT_EQ(piece_of(whole, parts, 0)[0], (Side{{{0, 1}, {4, 5}, {8, 9}}}));
    EXPECT_EQ(piece_of(whole, parts, 1)[0], (Side{{{1, 4}, {5, 8}, {9, 12}}}));
    EXPECT_EQ(piece_of(whole, {0, 4, {4}}, 0)[0], (Side{{{0, 12}}}));
    EXPECT_EQ(piece_of(whole, {1, 8, {1, 6, 8}}, 1)[1], (Side{{{1, 5}}}));
    EXPECT_EQ(piece_of(whole, {1, 8, {1, 6, 8}}, 0)[1], (Side{{{0, 1}, {8, 9}}}));
    EXPECT_EQ(count(piece_of(nothing(2), parts, 0)), 0);
    const Tile far{{{{index_max - 5, index_max}}}};
    EXPECT_EQ(count(piece_of(far, {0, index_max - 2, {index_max - 3, index_max - 2}}, 0)), 4);
    EXPECT_EQ(count(piece_of(far, {0, index_max - 2, {index_max - 3, index_max - 2}}, 1)), 1);
}

}  // namespace
}  // namespace reshard
