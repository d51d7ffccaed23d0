// Prices of halos: counted by hand, and the choice between the two ways.
#include <gtest/gtest.h>

#include "reshard/halo/plan.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

HaloMove fill_of(const Mesh& mesh, const std::string& text) {
    return {parse_halo_layout(mesh, text).value(), std::nullopt};
}

// 4 x 4 blocks of 16 x 16 elements, each with 8 neighbours.
const Mesh grid{{"x", 4}, {"y", 4}};
const HaloMove square = fill_of(grid, "f64[64@x~1%,64@y~1%]");
constexpr Index us = 1'000'000;  // picoseconds

TEST(HaloPlan, OnOneLevelEachMessageWaits) {
    const HaloPlan plan = plan_halo(square).value();
    // 68 cells. A run of cells costs 5 ns from the second on: 2 rows, 2 columns of 16, 4 corners.
    const HaloPrice at_once{HaloWay::at_once, 1, 8, 68 * 8, 8 * us + 68 * 8 * 500 + 68 * 8 * 100 + 37 * 5'000, true};
    // Columns have 18 cells when the rows are there.
    const HaloPrice by_dimension{
        HaloWay::by_dimension, 2, 4, 68 * 8, 4 * us + 68 * 8 * 500 + 68 * 8 * 100 + (1 + 35) * 5'000, true};
    EXPECT_EQ(plan.prices, (std::vector<HaloPrice>{at_once, by_dimension}));
    EXPECT_EQ(plan.way, HaloWay::at_once);  // not half of the time
}

TEST(HaloPlan, SixMessagesReplaceTwentySix) {
    const HaloMove cube = fill_of(Mesh{{"x", 4}, {"y", 4}, {"z", 4}}, "f64[64@x~1%,64@y~1%,64@z~1%]");
    const HaloPlan plan = plan_halo(cube).value();
    EXPECT_EQ(plan.prices[0].messages, 26);
    EXPECT_EQ(plan.prices[1].messages, 6);
    EXPECT_EQ(plan.prices[1].rounds, 3);
    EXPECT_EQ(plan.way, HaloWay::by_dimension);
    // A fill is one pass through memory that all ranks share.
    EXPECT_EQ(plan_halo(cube, laptop(), {.one_exchange = true}).value().way, HaloWay::at_once);
}

TEST(HaloPlan, RanksOfANodeShareItsConnection) {
    // A row of the grid is a node. 36 of a device's cells come from others, and 6 of its neighbours lie there.
    const Machine machine = make_machine("ethernet:nodes=4,per_node=4").value();
    const HaloPlan plan = plan_halo(square, machine).value();
    EXPECT_EQ(plan.prices[0].picoseconds,
              2 * us + 32 * 8 * 500 + 6 * 30 * us + 4 * 36 * 8 * 500 / 3 + 68 * 8 * 100 + 37 * 5'000);
    EXPECT_EQ(plan.prices[1].picoseconds,
              2 * us + 36 * 8 * 500 + 2 * 30 * us + (4 * 32 * 8 * 500 + 2) / 3 + 68 * 8 * 100 + (1 + 35) * 5'000);
    EXPECT_EQ(plan.way, HaloWay::by_dimension);
}

TEST(HaloPlan, OneDimensionHasOneWay) {
    const HaloPlan plan = plan_halo(fill_of(Mesh{{"x", 4}}, "f32[64@x~2,8]")).value();
    EXPECT_EQ(plan.way, HaloWay::at_once);
    EXPECT_EQ(plan.prices[0].picoseconds, plan.prices[1].picoseconds);
    EXPECT_EQ(plan.prices[0].received_bytes, 2 * 2 * 8 * 4);
}

TEST(HaloPlan, NothingToFillCostsNothing) {
    const HaloPlan plan = plan_halo(fill_of(grid, "f32[64@x,8]")).value();
    for (const HaloPrice& price : plan.prices) {
        EXPECT_EQ(price.rounds, 0);
        EXPECT_EQ(price.received_bytes, 0);
        EXPECT_EQ(price.picoseconds, 0);
    }
    EXPECT_EQ(plan.way, HaloWay::at_once);
}

TEST(HaloPlan, AMoveFromAnotherLayoutComesAtOnce) {
    HaloMove move = square;
    move.source = parse_layout(grid, "f64[64@(x,y),64]").value();
    const HaloPlan plan = plan_halo(move).value();
    ASSERT_EQ(plan.prices.size(), 1U);
    // A device wants 18 x 18 cells, and has 4 of the rows.
    EXPECT_EQ(plan.prices[0].received_bytes, (18 - 4) * 18 * 8);
    const auto refused = price_halo(move, HaloWay::by_dimension, laptop());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unsupported);
    move.source = parse_layout(grid, "f64[64@x,32@y]").value();
    EXPECT_EQ(plan_halo(move).error().code, Code::mismatch);
}

TEST(HaloPlan, DevicesThatOnlySendCount) {
    HaloMove move = square;
    move.source = parse_layout(Mesh({{"s", 2}}, {16, 17}), "f64[64@s,64]").value();
    move.source_halos = {{1, 1}, {}};
    const HaloPlan plan = plan_halo(move).value();
    EXPECT_EQ(plan.prices[0].received_bytes, 18 * 18 * 8);
    EXPECT_EQ(plan.prices[0].messages, 2);  // rows of both halves
    // Each of the two sends half of all cells.
    const Index sent = 16 * 18 * 18 * 8 / 2;
    EXPECT_GE(plan.prices[0].picoseconds, sent * 500);
    EXPECT_LT(plan.prices[0].picoseconds, sent * 500 + 10 * us);
    move.source_halos = {{1, 1}};
    EXPECT_EQ(plan_halo(move).error().code, Code::layout);
}

TEST(HaloPlan, OfAMillionDevicesThoseInTheMiddleCount) {
    const Mesh mesh{{"x", 1024}, {"y", 1024}};
    const HaloPlan plan = plan_halo(fill_of(mesh, "f64[65536@x~1,65536@y~1]")).value();
    for (const HaloPrice& price : plan.prices) {
        EXPECT_FALSE(price.exact);
        EXPECT_EQ(price.received_bytes, (66 * 66 - 64 * 64) * 8);
    }
    EXPECT_EQ(plan.prices[0].messages, 8);
    EXPECT_EQ(plan.prices[1].messages, 4);
}

}  // namespace
}  // namespace reshard
