#include "reshard/planner/integer.hpp"

#include <gtest/gtest.h>

namespace reshard {
namespace {

TEST(Integer, CheckedArithmeticSaysWhenItOverflows) {
    EXPECT_EQ(checked_multiply(3, 5), 15);
    EXPECT_EQ(checked_multiply(index_max, 1), index_max);
    EXPECT_EQ(checked_multiply(index_max, 2), std::nullopt);
    EXPECT_EQ(checked_multiply(Index{1} << 32, Index{1} << 31), std::nullopt);
    EXPECT_EQ(checked_add(index_max - 1, 1), index_max);
    EXPECT_EQ(checked_add(index_max, 1), std::nullopt);
}

TEST(Integer, SaturatingArithmeticStopsAtTheMaximum) {
    EXPECT_EQ(saturating_multiply(1 << 20, 1 << 20), Index{1} << 40);
    EXPECT_EQ(saturating_multiply(index_max, 3), index_max);
    EXPECT_EQ(saturating_multiply(index_max, 0), 0);
    EXPECT_EQ(saturating_add(index_max, index_max), index_max);
    EXPECT_EQ(saturating_add(1, 2), 3);
}

TEST(Integer, CeilDivideRoundsUpWithoutOverflow) {
    EXPECT_EQ(ceil_divide(0, 7), 0);
    EXPECT_EQ(ceil_divide(14, 7), 2);
    EXPECT_EQ(ceil_divide(15, 7), 3);
    EXPECT_EQ(ceil_divide(index_max, 2), index_max / 2 + 1);
}

TEST(Integer, ScaleUpKeepsTheWideProduct) {
    EXPECT_EQ(scale_up(10, 2, 3), 7);
    EXPECT_EQ(scale_up(9, 2, 3), 6);
    EXPECT_EQ(scale_up(index_max, 4, 8), index_max / 2 + 1);
    EXPECT_EQ(scale_up(index_max, 4, 2), index_max);
}

}  // namespace
}  // namespace reshard
