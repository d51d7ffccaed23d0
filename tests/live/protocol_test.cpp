#include <gtest/gtest.h>

#include <optional>

#include "support/property.hpp"
#include "tests/live/simulation.hpp"

namespace reshard::live::test {
namespace {

// Runs sessions from a seed on, and returns the sums. A broken invariant fails with the seed that repeats it.
Tally sum_of(std::uint64_t first, int sessions, const Faults& faults) {
    Tally sum;
    for (int i = 0; i < sessions; ++i) {
        const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
        const Tally one = simulate(seed, faults);
        EXPECT_EQ(one.fault, "") << "simulate(" << seed << ", ...)";
        if (!one.fault.empty()) break;
        sum.updates += one.updates;
        sum.errors += one.errors;
        sum.doubts += one.doubts;
        sum.gone += one.gone;
        sum.lapsed += one.lapsed;
        sum.corrupted += one.corrupted;
        sum.kills += one.kills;
    }
    return sum;
}

int sessions(int few, int many) { return reshard::test::long_run() ? many : reshard::test::cases(few); }

TEST(Simulation, SessionsWithoutFaultsServeEveryVersion) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Tally one = simulate(seed, {});
        ASSERT_EQ(one.fault, "") << seed;
        EXPECT_EQ(one.errors, 0) << seed;
        EXPECT_EQ(one.served, one.committed) << seed;
        EXPECT_GT(one.updates, 0) << seed;
    }
}

// Processes die: nothing else is wrong, so every error has that reason.
TEST(Simulation, Kills) {
    const Tally sum = sum_of(reshard::test::drawn_seed(), sessions(6000, 300000), {.kill = 10});
    EXPECT_GT(sum.updates, 5 * sessions(6000, 300000));
    EXPECT_GT(sum.kills, sessions(6000, 300000));
    EXPECT_GT(sum.doubts, 0);
}

// Everything at once: what is lost, late, doubled, stalled, cut and wrong.
TEST(Simulation, AllFaults) {
    const Faults all{.lose = 20, .repeat = 20, .delay = 30, .kill = 8, .stall = 10, .cut = 4, .corrupt = 3};
    const Tally sum = sum_of(reshard::test::drawn_seed(), sessions(12000, 600000), all);
    EXPECT_GT(sum.updates, 5 * sessions(12000, 600000));
    EXPECT_GT(sum.doubts, 0);
    EXPECT_GT(sum.gone, 0);
    EXPECT_GT(sum.lapsed, 0);
    EXPECT_GT(sum.corrupted, 0);
}

// Stalls only, longer than leases: memory is used again under late readers unless the protocol forbids it.
TEST(Simulation, Stalls) {
    const Tally sum = sum_of(reshard::test::drawn_seed(), sessions(2000, 100000), {.delay = 50, .stall = 40});
    EXPECT_GT(sum.lapsed, 0);
    EXPECT_GT(sum.gone, 0);
}

// One publisher's rank is silent and its newest version here is old, so each try finds it gone at the other one. The
// update must end all the same. This was a loop without end.
TEST(SubscriberState, ASilentPublisherEndsTheTriesOfAVersionThatIsGone) {
    constexpr Index lease = 100;
    SubscriberState state(2, lease, {}, false);
    std::optional<Finished> finished;
    int tries = 0;
    const auto step = [&](Index now) {
        for (const Action& action : state.take()) {
            if (const auto* one = std::get_if<Finished>(&action)) finished = *one;
            if (const auto* gather = std::get_if<Gather>(&action)) state.gathered({gather->vote}, now);
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr || send->message.word != Word::want || send->peer != 0) continue;
            ++tries;
            state.receive(0, {Word::gone, send->message.generation, 9, 0}, now);
        }
        state.tick(now);
    };
    state.join(7, 0);
    for (int i = 0; i < 2; ++i) step(0);
    ASSERT_EQ(finished, Finished{});
    finished.reset();
    state.receive(0, {Word::ready, 0, 9, 0}, 0);
    state.receive(1, {Word::ready, 0, 4, 0}, 0);  // its last word
    state.start(true, 0);
    for (Index now = 0; !finished && now < 10 * lease; ++now) step(now);
    ASSERT_TRUE(finished);
    EXPECT_TRUE(finished->reason.starts_with("rank 1 of the publisher has been silent for 2")) << finished->reason;
    EXPECT_GT(tries, 5);
}

TEST(PublisherState, VersionsGrow) {
    PublisherState state(100);
    ASSERT_TRUE(state.stage(5));
    EXPECT_EQ(state.state_of(5), VersionState::staged);
    state.ready(5, 1);
    const auto again = state.stage(5);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::usage);
    EXPECT_EQ(again.error().message, "version 5 is committed after version 5; versions must grow from 1 on");
}

TEST(PublisherState, ALeaseKeepsAVersionUntilItIsReleasedOrLapses) {
    PublisherState state(100);
    state.join(7, 0);
    for (Index version = 1; version <= 2; ++version) {
        ASSERT_TRUE(state.stage(version));
        state.ready(version, 1);
    }
    state.receive(7, {Word::want, 1, 1, 0}, 10);
    EXPECT_EQ(state.state_of(1), VersionState::releasing);
    EXPECT_EQ(state.reader_count(), 1U);
    for (Index version = 3; version <= 4; ++version) {
        ASSERT_TRUE(state.stage(version));
        state.ready(version, 1);
    }
    EXPECT_EQ(state.state_of(1), VersionState::releasing);
    EXPECT_EQ(state.state_of(2), VersionState::none);
    static_cast<void>(state.take());
    state.tick(110);
    EXPECT_EQ(state.state_of(1), VersionState::none);
    bool reusable = true;
    for (const Action& action : state.take())
        if (const auto* drop = std::get_if<Drop>(&action)) reusable = drop->reusable;
    EXPECT_FALSE(reusable);  // its reader never said that it has finished
}

TEST(PublisherState, ALateWantOfAReleasedGenerationTakesNoLease) {
    PublisherState state(100);
    state.join(7, 0);
    ASSERT_TRUE(state.stage(1));
    state.ready(1, 1);
    state.receive(7, {Word::want, 1, 1, 0}, 10);
    state.receive(7, {Word::release, 1, 1, 0}, 20);
    state.receive(7, {Word::want, 1, 1, 0}, 30);
    EXPECT_EQ(state.reader_count(), 0U);
    state.receive(7, {Word::want, 2, 1, 0}, 40);
    EXPECT_EQ(state.reader_count(), 1U);
}

}  // namespace
}  // namespace reshard::live::test
