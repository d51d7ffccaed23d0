#include "src/plan/split_run.hpp"

#include <gtest/gtest.h>

#include <set>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const char* text) { return *parse_layout(mesh, text); }

Plan permuted() { return {at("f32[12@x,10@y]"), at("f32[12@x,10@y]"), {}}; }

Plan three_steps() {
    Plan plan{at("f32[12@x,10]"), at("f32[12@y,10]"), {}};
    plan.steps = {{StepKind::slice, at("f32[12@(x,y),10]")},
                  {StepKind::permute, at("f32[12@(y,x),10]")},
                  {StepKind::all_gather, at("f32[12@y,10]")}};
    return plan;
}

TEST(PiecewiseUnit, TheFewestPiecesThatFit) {
    const Plan plan = three_steps();
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);  // 240 + 160; a tile between: 80
    EXPECT_EQ(footprint_bytes(plan, {}, false), ends + 80);
    EXPECT_EQ(split_within(plan, ends + 80, false), SplitPlan{});
    EXPECT_EQ(split_within(plan, ends + 79, false), (SplitPlan{2, 1, 9, 10}));
    EXPECT_EQ(split_within(plan, ends + 40, false), (SplitPlan{2, 1, 5, 10}));
    EXPECT_EQ(split_within(plan, ends + 8, false), (SplitPlan{10, 1, 1, 10}));
    EXPECT_EQ(split_within(plan, ends + 7, false), std::nullopt);
    for (Index limit = ends + 8; limit < ends + 80; ++limit) {
        const auto pieces = split_within(plan, limit, false);
        ASSERT_TRUE(pieces.has_value());
        EXPECT_LE(footprint_bytes(plan, *pieces, false), limit);
        EXPECT_GE(pieces->count * pieces->extent, 10);
        EXPECT_LT((pieces->count - 1) * pieces->extent, 10);
    }
}

// Every dimension is moved; tiles of 4 x 4 blocks of 2 x 3 indices at the finest.
Plan all_moved() {
    Plan plan{at("f32[12@x,18]"), at("f32[12,18@y]"), {}};
    plan.steps = {{StepKind::all_to_all, at("f32[12,18@x]")},
                  {StepKind::slice, at("f32[12@y,18@x]")},
                  {StepKind::exchange, at("f32[12,18@y]")}};
    return plan;
}

TEST(PiecewiseUnit, BlocksThatNoLayoutCuts) {
    const Plan plan = all_moved();
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    const Index workspace = footprint_bytes(plan, {}, false) - ends;
    EXPECT_EQ(split_within(plan, ends + workspace - 1, false)->count, 2);
    EXPECT_EQ(split_within(plan, ends + workspace / 3 - 1, false), std::nullopt);
    EXPECT_EQ(split_within(permuted(), 1, false), std::nullopt);
    Plan fine{at("f32[6@x,9]"), at("f32[6@y,9@x]"), {{StepKind::exchange, at("f32[6@y,9@x]")}}};
    EXPECT_EQ(split_within(fine, 1, false), std::nullopt);  // blocks of one index, and 9 over 2 does not divide
}

TEST(PiecewiseUnit, EveryPieceIsAPlanAndTheirTilesMakeUpTheWhole) {
    const auto expect_whole = [](const Plan& plan, const SplitPlan& pieces) {
        ASSERT_TRUE(check(plan).has_value());
        for (Index device = 0; device < device_count(plan.source); ++device) {
            const Tile whole = tile(plan.source, device);
            std::set<Index> written;
            for (Index piece = 0; piece < pieces.count; ++piece) {
                const Plan part = plan_of(plan, pieces, piece);
                const auto verdict = check(part);
                ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
                const Tile box = tile(part.source, device);
                const Storage storage = storage_of(row_major(whole), pieces, piece);
                ASSERT_EQ(box.size(), whole.size() + 1);
                for (Index i = 0; i < box[0].size(); ++i)
                    for (Index j = 0; j < box[1].size(); ++j)
                        for (Index k = 0; k < box[2].size(); ++k) {
                            const Index place = storage.offset + i * storage.strides[0] + j * storage.strides[1] +
                                                k * storage.strides[2];
                            // The index in a block, and the blocks before it, seen in the whole.
                            const Index cut = piece * pieces.extent + (pieces.dim == 0 ? j : k);
                            const Index row = pieces.dim == 0 ? i * pieces.block + cut : i;
                            const Index column = pieces.dim == 0 ? k : j * pieces.block + cut;
                            EXPECT_EQ(place, row * whole[1].size() + column);
                            EXPECT_TRUE(written.insert(place).second);
                        }
            }
            EXPECT_EQ(static_cast<Index>(written.size()), count(whole));
        }
    };
    expect_whole(three_steps(), {4, 1, 3, 10});
    expect_whole(three_steps(), {2, 0, 1, 2});
    expect_whole(all_moved(), {3, 1, 1, 3});
    expect_whole(all_moved(), {2, 0, 1, 2});
}

TEST(PiecewiseUnit, TheJudgeStatesTheFootprintInPieces) {
    const Plan plan = three_steps();
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    Limits limits;
    limits.footprint_bytes_max = ends + 40;
    const auto verdict = check(plan, limits);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(verdict->pieces, 2);
    EXPECT_EQ(verdict->footprint_bytes, ends + 40);
    EXPECT_EQ(check(plan)->pieces, 1);
    limits.footprint_bytes_max = ends;
    EXPECT_EQ(check(plan, limits).error().code, Code::infeasible);
}

}  // namespace
}  // namespace reshard
