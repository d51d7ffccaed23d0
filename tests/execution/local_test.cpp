// Ranks of one process: one thread drives them all, and some peers never come.
#include "reshard/backends/local.hpp"

#include <gtest/gtest.h>

#include "reshard/execute.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Plan gathering_plan() {
    const Mesh mesh = *parse_mesh("x=2");
    const Layout target = *parse_layout(mesh, "u8[4]");
    return {*parse_layout(mesh, "u8[4@x]"), target, {{StepKind::all_gather, target}}};
}

// One rank of a run, driven by a single thread.
struct Party {
    Executor executor;
    std::array<std::byte, 2> source;
    std::array<std::byte, 4> target{};
    std::unique_ptr<Bound> bound = {};
    std::unique_ptr<Ticket> ticket = {};
};

TEST(Local, OneThreadDrivesAllRanks) {
    const Plan plan = gathering_plan();
    local::World world(2);
    std::vector<Party> parties;
    for (Index rank = 0; rank < 2; ++rank) {
        auto executor = Executor::prepare(judge(plan, world.rank(rank).capabilities()), world.rank(rank));
        ASSERT_TRUE(executor);
        const auto first = static_cast<unsigned char>(10 * rank);
        parties.push_back({std::move(*executor), {std::byte{first}, std::byte(first + 1)}});
    }
    for (int run = 0; run < 3; ++run) {
        for (Party& party : parties) {
            const Buffers buffers{party.source, party.target, {}};
            party.bound = *party.executor.bind(std::span(&buffers, 1));
            party.ticket = *party.bound->start();
            EXPECT_EQ(*party.ticket->test(), &party == &parties.back());
        }
        for (Party& party : parties) {
            EXPECT_TRUE(party.ticket->wait());
            EXPECT_EQ(party.target, (std::array{std::byte{0}, std::byte{1}, std::byte{10}, std::byte{11}}));
            party.ticket.reset();
        }
    }
}

TEST(Local, APeerThatNeverStartsIsAnErrorAndTheExecutorIsDone) {
    local::World world(2, {.timeout = std::chrono::milliseconds(20)});
    auto executor = Executor::prepare(judge(gathering_plan(), world.rank(1).capabilities()), world.rank(1));
    ASSERT_TRUE(executor);
    const std::array<std::byte, 2> source{};
    std::array<std::byte, 4> target{};
    const auto done = executor->run(source, target);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::backend);
    EXPECT_NE(done.error().message.find("rank 0"), std::string::npos) << done.error().message;
    const auto again = executor->run(source, target);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find("prepare it anew"), std::string::npos) << again.error().message;
}

// A rank that polls counts as waiting too.
TEST(Local, APeerThatNeverStartsIsAnErrorOfWhoPolls) {
    local::World world(2, {.timeout = std::chrono::milliseconds(20)});
    auto executor = Executor::prepare(judge(gathering_plan(), world.rank(1).capabilities()), world.rank(1));
    ASSERT_TRUE(executor);
    const std::array<std::byte, 2> source{};
    std::array<std::byte, 4> target{};
    const Buffers buffers{source, target, {}};
    auto bound = executor->bind(std::span(&buffers, 1));
    ASSERT_TRUE(bound);
    auto ticket = (*bound)->start();
    ASSERT_TRUE(ticket);
    auto done = (*ticket)->test();
    while (done && !*done) done = (*ticket)->test();
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("rank 0"), std::string::npos) << done.error().message;
}

TEST(Local, MoreRanksThanAProcessHasAreNotMade) {
    for (const Index ranks : {local::ranks_max + 1, Index{1} << 40, index_max}) {
        local::World world(ranks);
        EXPECT_EQ(world.size(), ranks);
        const auto prepared =
            Executor::prepare(judge(gathering_plan(), world.rank(ranks - 1).capabilities()), world.rank(ranks - 1));
        ASSERT_FALSE(prepared);
        EXPECT_EQ(prepared.error().code, Code::unsupported);
        EXPECT_NE(prepared.error().message.find("at most 65536"), std::string::npos) << prepared.error().message;
        EXPECT_FALSE(world.rank(0).allocate(8));
    }
    EXPECT_TRUE(local::World(local::ranks_max).rank(local::ranks_max - 1).allocate(8));
}

TEST(Local, DisagreementIsLearnedAtTheLatestAtTheStart) {
    Plan other = gathering_plan();
    other.steps.front().kind = StepKind::exchange;
    local::World world(2);
    auto first = Executor::prepare(judge(gathering_plan(), world.rank(0).capabilities()), world.rank(0));
    ASSERT_TRUE(first);
    const auto second = Executor::prepare(judge(other, world.rank(1).capabilities()), world.rank(1));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::mismatch);
    const std::array<std::byte, 2> source{};
    std::array<std::byte, 4> target{};
    const auto done = first->run(source, target);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::mismatch);
}

}  // namespace
}  // namespace reshard
