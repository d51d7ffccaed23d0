#include "reshard/planner/simulate.hpp"

#include <gtest/gtest.h>

#include "reshard/text.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}};
const std::vector<std::int64_t> array{10, 11, 12, 13};

Layout at(const char* text) { return *parse_layout(mesh, text); }

TEST(SimulateUnit, DistributeCutsTiles) {
    EXPECT_EQ(*distribute(at("f32[4@x]"), array), (Tiles{{10, 11}, {12, 13}}));
    EXPECT_EQ(*distribute(at("f32[2,2@x]"), array), (Tiles{{10, 12}, {11, 13}}));
    EXPECT_EQ(*distribute(at("f32[4]"), array), (Tiles{array, array}));
}

TEST(SimulateUnit, DistributeSplitsIntoSummandsThatDiffer) {
    const auto tiles = distribute(at("f32[4]{U:x}"), array);
    ASSERT_TRUE(tiles.has_value());
    for (std::size_t i = 0; i < array.size(); ++i) EXPECT_EQ((*tiles)[0][i] + (*tiles)[1][i], array[i]);
    EXPECT_NE((*tiles)[0], (*tiles)[1]);
    EXPECT_TRUE(denotes(at("f32[4]{U:x}"), *tiles, array));
}

TEST(SimulateUnit, AnArrayOfAnotherSizeIsRefused) {
    EXPECT_EQ(distribute(at("f32[5]"), array).error().code, Code::mismatch);
}

TEST(SimulateUnit, DenotesSeesAWrongElementAndAWrongReplica) {
    Tiles tiles = *distribute(at("f32[4]"), array);
    EXPECT_TRUE(denotes(at("f32[4]"), tiles, array));
    tiles[1][3] = 0;
    EXPECT_FALSE(denotes(at("f32[4]"), tiles, array));
    EXPECT_FALSE(denotes(at("f32[4]"), Tiles{array}, array));
}

TEST(SimulateUnit, EachKindMovesWhatItSays) {
    const auto run = [&](StepKind kind, const char* before, const char* after, const Tiles& tiles) {
        return *simulate(at(before), {kind, at(after)}, tiles);
    };
    EXPECT_EQ(run(StepKind::slice, "f32[4]", "f32[4@x]", {array, array}), (Tiles{{10, 11}, {12, 13}}));
    EXPECT_EQ(run(StepKind::all_gather, "f32[4@x]", "f32[4]", {{10, 11}, {12, 13}}), (Tiles{array, array}));
    EXPECT_EQ(run(StepKind::all_to_all, "f32[2@x,2]", "f32[2,2@x]", {{10, 11}, {12, 13}}), (Tiles{{10, 12}, {11, 13}}));
    EXPECT_EQ(run(StepKind::all_reduce, "f32[4]{U:x}", "f32[4]", {{1, 2, 3, 4}, {9, 9, 9, 9}}),
              (Tiles{{10, 11, 12, 13}, {10, 11, 12, 13}}));
    EXPECT_EQ(run(StepKind::reduce_scatter, "f32[4]{U:x}", "f32[4@x]", {{1, 2, 3, 4}, {9, 9, 9, 9}}),
              (Tiles{{10, 11}, {12, 13}}));
    EXPECT_EQ(run(StepKind::zero_fill, "f32[4@x]", "f32[4]{U:x}", {{10, 11}, {12, 13}}),
              (Tiles{{10, 11, 0, 0}, {0, 0, 12, 13}}));
    EXPECT_EQ(run(StepKind::exchange, "f32[4@x]", "f32[4]", {{10, 11}, {12, 13}}), (Tiles{array, array}));
}

TEST(SimulateUnit, AStepThatIsNotTypedIsRefused) {
    const auto result = simulate(at("f32[4@x]"), {StepKind::slice, at("f32[4]")}, {{10, 11}, {12, 13}});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::step);
}

}  // namespace
}  // namespace reshard
