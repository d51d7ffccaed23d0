// Which way is kept, by times that a test makes up.
#include "backends/mpi/shm/autotune.hpp"

#include <gtest/gtest.h>

namespace reshard::mpi {
namespace {

using Times = std::vector<double>;

// So many runs; how many of them went each way.
std::vector<std::size_t> run(Autotune& choice, const Times& times, std::size_t runs) {
    std::vector<std::size_t> taken(times.size());
    for (std::size_t i = 0; i < runs; ++i) {
        const std::size_t way = choice.way();
        ++taken[way];
        choice.ran(times[way]);
    }
    return taken;
}

TEST(Autotune, TriesAllThenKeepsTheFastest) {
    Autotune choice(3);
    EXPECT_EQ(choice.seconds(), (Times{0, 0, 0}));
    EXPECT_EQ(run(choice, {3, 1, 2}, 9), (std::vector<std::size_t>{3, 3, 3}));
    ASSERT_TRUE(choice.settled());
    EXPECT_EQ(choice.kept(), 1u);
    EXPECT_EQ(choice.seconds(), (Times{3, 1, 2}));
    EXPECT_EQ(run(choice, {3, 1, 2}, 8), (std::vector<std::size_t>{0, 8, 0}));
}

TEST(Autotune, OneSlowRunDecidesNothing) {
    Autotune choice(2);
    run(choice, {1, 2}, 3);
    choice.ran(2);    // of the other one
    choice.ran(100);  // of the first one, for once
    choice.ran(2);
    ASSERT_TRUE(choice.settled());
    EXPECT_EQ(choice.kept(), 0u);
    choice.ran(100);
    EXPECT_TRUE(choice.settled());
}

// Looking at the others costs ever less while nothing changes.
TEST(Autotune, LooksAtTheOthersNowAndThen) {
    Autotune choice(3);
    const auto taken = run(choice, {1, 2, 2}, 20000);
    EXPECT_EQ(choice.kept(), 0u);
    EXPECT_GE(taken[1], 15u);
    EXPECT_LE(taken[1], 40u);
    EXPECT_EQ(taken[1], taken[2]);
}

TEST(Autotune, ChangesItsMindWhenAnotherBecomesFaster) {
    Autotune choice(3);
    run(choice, {1, 2, 2}, 30);
    ASSERT_EQ(choice.kept(), 0u);
    run(choice, {1, 2, 0.5}, 60);
    ASSERT_TRUE(choice.settled());
    EXPECT_EQ(choice.kept(), 2u);
}

TEST(Autotune, ChangesItsMindWhenTheKeptOneBecomesSlower) {
    Autotune choice(3);
    run(choice, {1, 2, 2}, 9 + 8 + 2 + 10);
    ASSERT_EQ(choice.kept(), 0u);
    run(choice, {1.5, 1.3, 2}, 30);
    ASSERT_TRUE(choice.settled());
    EXPECT_EQ(choice.kept(), 1u);
}

// Where all have become slower there is nothing better, and trials must not go on for ever.
TEST(Autotune, AllSlowerIsTriedOnce) {
    Autotune choice(2);
    run(choice, {1, 2}, 100);
    const auto taken = run(choice, {3, 6}, 1000);
    EXPECT_EQ(choice.kept(), 0u);
    EXPECT_LE(taken[1], 20u);
}

// What takes many times as long is not looked at again.
TEST(Autotune, TheHopelessIsTriedOnce) {
    Autotune choice(3);
    EXPECT_EQ(run(choice, {1, 1.5, 10}, 1000)[2], 3u);
    EXPECT_EQ(choice.kept(), 0u);
}

// To be wrong once costs little: one slow run of the kept way while another is looked at.
TEST(Autotune, GoesBackWhenItWasWrong) {
    Autotune choice(2);
    run(choice, {1, 1.2}, 6 + 8);
    ASSERT_EQ(choice.way(), 1u);
    choice.ran(0.8);
    ASSERT_EQ(choice.kept(), 1u);
    run(choice, {1, 1.2}, 30);
    EXPECT_EQ(choice.kept(), 0u);
}

TEST(Autotune, OfOneThereIsNone) {
    Autotune choice(1);
    run(choice, {1}, 100);
    EXPECT_EQ(choice.way(), 0u);
    EXPECT_TRUE(choice.settled());
}

}  // namespace
}  // namespace reshard::mpi
