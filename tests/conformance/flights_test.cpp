// Several executors in flight at once, and ranks that fail or leave while others wait for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/planner/list.hpp"
#include "support/time.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using Clock = std::chrono::steady_clock;

std::string mesh_of_all() { return fmt::format("x={}", harness().ranks()); }

// A plan long enough for several rounds of bounce buffers and several messages.
Plan turning_plan() { return *plan_of(mesh_of_all(), "f32[96@x,64]", exchange, "f32[96,64@x]"); }
Plan gathering_plan() { return *plan_of(mesh_of_all(), "f32[48@x,40]", all_gather, "f32[48,40]"); }
Plan adding_plan() { return *plan_of(mesh_of_all(), "f32[48,40]{U:x}", all_reduce, "f32[48,40]"); }

// An executor with its own buffers, one run at a time.
struct Party {
    Party(Backend& backend, const ListPlan& list) : executor(Executor::prepare(judge(list), backend).value()) {
        for (std::size_t i = 0; i < list.plans.size(); ++i) {
            benches.emplace_back(Item{list.plans[i]}, backend.rank(), i + 1, executor.plans()[i].workspace_bytes);
        }
    }
    Result<void> start() {
        std::vector<Buffers> buffers;
        for (Workbench& bench : benches) buffers.push_back(bench.buffers());
        auto made = executor.bind(buffers);
        if (!made) return tl::unexpected(made.error());
        bound = std::move(*made);
        auto started = bound->start();
        if (!started) return tl::unexpected(started.error());
        ticket = std::move(*started);
        return {};
    }
    void expect_right() {
        const auto done = ticket->wait();
        ASSERT_TRUE(done) << done.error().message;
        for (const Workbench& bench : benches) EXPECT_EQ(bench.wrong(), "");
        ticket.reset();
    }

    Executor executor;
    std::vector<Workbench> benches;
    std::unique_ptr<Bound> bound;
    std::unique_ptr<Ticket> ticket;
};

ListPlan in_a_bucket_each(const std::vector<Plan>& plans) {
    ListPlan list = in_one_bucket(plans);
    list.buckets.clear();
    for (std::size_t i = 0; i < plans.size(); ++i) list.buckets.push_back({i});
    return list;
}

// Each rank begins with another executor. A bucket starts when the bucket before it is done, even while the rank waits
// for another run.
TEST(Flights, ExecutorsInFlightAreWaitedForInAnyOrder) {
    const std::vector<ListPlan> lists = {in_one_bucket({turning_plan()}), in_one_bucket({adding_plan()}),
                                         in_a_bucket_each({gathering_plan(), turning_plan(), adding_plan()}),
                                         in_a_bucket_each({turning_plan(), gathering_plan(), turning_plan()})};
    harness().on_every_rank([&](Backend& backend) {
        std::vector<std::unique_ptr<Party>> parties;
        for (const ListPlan& list : lists) parties.push_back(std::make_unique<Party>(backend, list));
        const auto rank = static_cast<std::size_t>(backend.rank());
        for (std::size_t run = 0; run < 3; ++run) {
            for (auto& party : parties) ASSERT_TRUE(party->start());
            for (std::size_t i = 0; i < parties.size(); ++i) {
                const std::size_t turned = rank % 2 == 0 ? i : parties.size() - 1 - i;
                parties[(turned + rank + run) % parties.size()]->expect_right();
            }
        }
    });
}

TEST(Flights, AnotherRunGoesOnWhileOneIsLookedAt) {
    const ListPlan list = in_a_bucket_each({turning_plan(), adding_plan(), turning_plan()});
    harness().on_every_rank([&](Backend& backend) {
        Party first(backend, list);
        Party second(backend, list);
        ASSERT_TRUE(first.start());
        ASSERT_TRUE(second.start());
        Party& looked_at = backend.rank() % 2 == 0 ? first : second;
        auto done = looked_at.ticket->test();
        while (done && !*done) done = looked_at.ticket->test();
        EXPECT_TRUE(done);
        first.expect_right();
        second.expect_right();
    });
}

TEST(Flights, ARunGoesOnWhileTheNextIsPrepared) {
    const ListPlan list = in_a_bucket_each({turning_plan(), gathering_plan(), turning_plan()});
    harness().on_every_rank([&](Backend& backend) {
        Party first(backend, list);
        ASSERT_TRUE(first.start());
        if (backend.rank() % 2 == 1) first.expect_right();
        Party second(backend, list);
        if (backend.rank() % 2 == 0) first.expect_right();
        ASSERT_TRUE(second.start());
        second.expect_right();
    });
}

// The last rank calls `fails` on its executors instead of starting their runs. The other ranks must learn of each
// failure and its reason. All executors fail at once, because a rank waits a while for a failed bind to be made good.
template <class Fails>
void expect_told(std::string_view told, const Fails& fails) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank has no peer to tell";
    const std::vector<Plan> plans = {turning_plan(), gathering_plan(), adding_plan()};
    harness().on_every_rank([&](Backend& backend) {
        std::vector<std::unique_ptr<Party>> parties;
        for (const Plan& plan : plans) {
            parties.push_back(std::make_unique<Party>(backend, in_one_bucket({plan})));
            ASSERT_TRUE(parties.back()->start());
            parties.back()->expect_right();
        }
        const Index last = backend.size() - 1;
        const auto begin = Clock::now();
        std::vector<Result<void>> started;
        for (auto& party : parties) {
            if (backend.rank() == last) {
                fails(party);
            } else {
                started.push_back(party->start());
            }
        }
        for (std::size_t i = 0; i < started.size(); ++i) {
            const auto done = started[i] ? parties[i]->ticket->wait() : started[i];
            const std::string message = done ? "right" : done.error().message;
            EXPECT_NE(message.find(fmt::format("rank {}{}", last, told)), std::string::npos)
                << backend.rank() << ", executor " << i << ": " << message;
        }
        EXPECT_LT(Clock::now() - begin, test::soon);
        harness().count_true(backend, true);  // it stays in this state until all ranks know
        parties.clear();
        for (const Plan& plan : plans) expect_moves(backend, {{plan}});  // the backend still works
    });
}

TEST(Flights, ARankThatDropsItsExecutorTellsTheOthers) {
    expect_told(" dropped its executor", [](std::unique_ptr<Party>& party) { party.reset(); });
}

TEST(Flights, ARankThatFailsToBindTellsTheOthers) {
    expect_told(": bind failed: ", [](std::unique_ptr<Party>& party) {
        Buffers buffers = party->benches.front().buffers();
        buffers.target = buffers.target.first(1);
        EXPECT_FALSE(party->executor.bind(std::span(&buffers, 1)));
    });
}

// A rank that soon binds again continues as if nothing had happened.
TEST(Flights, ABindThatFailsMayBeMadeGood) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        Party party(backend, in_one_bucket({plan}));
        Buffers buffers = party.benches.front().buffers();
        if (buffers.target.empty()) return;
        buffers.target = buffers.target.first(1);
        if (backend.rank() == 0) {
            EXPECT_FALSE(party.executor.bind(std::span(&buffers, 1)));
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        ASSERT_TRUE(party.start());
        party.expect_right();
    });
}

// Other ranks may still be in the last run.
TEST(Flights, WhoIsThroughMayDropItsExecutor) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        for (Index round = 0; round < 20; ++round) {
            Party party(backend, in_one_bucket({plan}));
            ASSERT_TRUE(party.start());
            if (backend.rank() == round % backend.size()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            party.expect_right();
        }
    });
}

TEST(Flights, ABufferThatIsNullButLong) {
    const Plan plan = turning_plan();
    harness().on_every_rank([&](Backend& backend) {
        Party party(backend, in_one_bucket({plan}));
        const Buffers right = party.benches.front().buffers();
        const auto said = [&](const Buffers& buffers) {
            const auto bound = party.executor.bind(std::span(&buffers, 1));
            return bound ? std::string() : bound.error().message;
        };
        const std::size_t size = right.source.size();
        const Buffers no_source{{static_cast<const std::byte*>(nullptr), size}, right.target, {}};
        const Buffers no_target{right.source, {static_cast<std::byte*>(nullptr), right.target.size()}, {}};
        EXPECT_EQ(said(no_source), fmt::format("the source of array 0 is null but {} bytes long", size));
        EXPECT_EQ(said(no_target), fmt::format("the target of array 0 is null but {} bytes long", right.target.size()));
        EXPECT_EQ(said(right), "");
    });
}

TEST(Flights, EveryBucketIsDescribed) {
    const ListPlan list = in_a_bucket_each({turning_plan(), adding_plan()});
    harness().on_every_rank([&](Backend& backend) {
        const auto described = [&](const ListPlan& one) {
            return Executor::prepare(judge(one), backend).value().describe();
        };
        const std::string first = described(in_one_bucket({list.plans[0]}));
        const std::string second = described(in_one_bucket({list.plans[1]}));
        EXPECT_EQ(described(list), first == second ? first : first + "; then " + second);
    });
}

}  // namespace
}  // namespace reshard::conformance
