#include "reshard/planner/refinement.hpp"

#include <gtest/gtest.h>

namespace reshard {
namespace {

TEST(Refinement, DigitsBetweenBordersMostMajorFirst) {
    EXPECT_EQ(refinement({1, 24, 4, 2, 4}), (AtomList{{6, 4}, {2, 2}, {2, 1}}));
    EXPECT_EQ(refinement({1}), AtomList{});
    EXPECT_EQ(refinement({}), AtomList{});
}

TEST(Refinement, BordersThatDoNotDivideHaveNone) {
    EXPECT_EQ(refinement({1, 2, 3, 6}), std::nullopt) << "6 cut as 2 x 3 and as 3 x 2";
}

// In one list {2, 4} and {2, 2} are two atoms with a border between them, although a set would merge them.
TEST(Refinement, BordersOfALayoutAreThoseOfItsLists) {
    Layout layout;
    layout.mesh = Mesh{{"x", 2}, {"y", 2}, {"z", 2}};
    layout.dims = {Dim(8, {{2, 4}}), Dim(8, {{2, 2}})};
    layout.unreduced = {{2, 1}};
    std::vector<Index> borders;
    append_borders(layout, borders);
    EXPECT_EQ(refinement(borders), (AtomList{{2, 4}, {2, 2}, {2, 1}}));
}

TEST(Refinement, ADigitIsWithinTheAtomThatIsCutIntoIt) {
    const Atom atom{6, 2};
    EXPECT_TRUE(is_within({3, 2}, atom));
    EXPECT_TRUE(is_within({2, 6}, atom));
    EXPECT_FALSE(is_within({2, 12}, atom));
    EXPECT_FALSE(is_within({2, 1}, atom));
}

}  // namespace
}  // namespace reshard
