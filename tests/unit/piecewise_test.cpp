#include "piecewise.hpp"

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
    EXPECT_EQ(footprint_bytes(plan, {}), ends + 80);
    EXPECT_EQ(pieces_within(plan, ends + 80), Pieces{});
    EXPECT_EQ(pieces_within(plan, ends + 79), (Pieces{2, 1, 9}));
    EXPECT_EQ(pieces_within(plan, ends + 40), (Pieces{2, 1, 5}));
    EXPECT_EQ(pieces_within(plan, ends + 8), (Pieces{10, 1, 1}));
    EXPECT_EQ(pieces_within(plan, ends + 7), std::nullopt);
    for (Index limit = ends + 8; limit < ends + 80; ++limit) {
        const auto pieces = pieces_within(plan, limit);
        ASSERT_TRUE(pieces.has_value());
        EXPECT_LE(footprint_bytes(plan, *pieces), limit);
        EXPECT_GE(pieces->count * pieces->extent, 10);
        EXPECT_LT((pieces->count - 1) * pieces->extent, 10);
    }
}

TEST(PiecewiseUnit, WhatEveryDimensionMovesIsNotCut) {
    Plan plan{at("f32[12@x,12]"), at("f32[12,12@y]"), {}};
    plan.steps = {{StepKind::all_to_all, at("f32[12,12@x]")},
                  {StepKind::slice, at("f32[12@y,12@x]")},
                  {StepKind::exchange, at("f32[12,12@y]")}};
    ASSERT_TRUE(check(plan).has_value());
    EXPECT_EQ(pieces_within(plan, tile_bytes(plan.source) + tile_bytes(plan.target)), std::nullopt);
    EXPECT_EQ(pieces_within(permuted(), 1), std::nullopt);
}

TEST(PiecewiseUnit, EveryPieceIsAPlanAndTheirTilesMakeUpTheWhole) {
    const Plan plan = three_steps();
    const Pieces pieces{4, 1, 3};
    for (Index device = 0; device < device_count(plan.source); ++device) {
        const Tile whole = tile(plan.source, device);
        std::set<Index> written;
        for (Index piece = 0; piece < pieces.count; ++piece) {
            const Plan part = plan_of(plan, pieces, piece);
            const auto verdict = check(part);
            ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
            const Tile box = tile(part.source, device);
            const Storage storage = storage_of(row_major(whole), pieces, piece);
            for (Index i = 0; i < box[0].size(); ++i)
                for (Index j = 0; j < box[1].size(); ++j) {
                    const Index place = storage.offset + i * storage.strides[0] + j * storage.strides[1];
                    EXPECT_EQ(place, i * whole[1].size() + piece * pieces.extent + j);
                    EXPECT_TRUE(written.insert(place).second);
                }
        }
        EXPECT_EQ(static_cast<Index>(written.size()), count(whole));
    }
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
