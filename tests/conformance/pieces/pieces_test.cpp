// Runs in overlapping pieces, with each rank at its own pace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <numeric>

#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "drawn.hpp"
#include "reshard/synthesize.hpp"
#include "support/property.hpp"
#include "support/time.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

constexpr int runs_of_case = 2;

Judged<Plan> judged(const InPieces& drawn) { return judge(drawn.item.plan, drawn.split).value(); }

std::string mesh_of_all() { return fmt::format("x={}", harness().ranks()); }

// Four pieces; the third travels first.
InPieces turning() {
    const auto plan = plan_of(mesh_of_all(), "f32[96@x,64]", exchange, "f32[96,64@x]");
    return {{*plan}, {0, 96 / harness().ranks(), {1, 2, 5, 96 / harness().ranks()}, {2, 0, 3, 1}, true}};
}

// Offers and polls in any order until all pieces have arrived. Pieces of this rank are untouched if they are behind the
// two that may travel, or not offered yet.
void play(Ticket& ticket, PieceBench& bench, const InPieces& drawn, bool withheld, Random& random) {
    const std::size_t count = drawn.split.ends.size();
    std::vector<std::size_t> to_offer(withheld ? count : 0);
    std::iota(to_offer.begin(), to_offer.end(), std::size_t{0});
    std::vector<bool> offered(count, !withheld);
    std::size_t last = 0;
    const auto prefix = [&] {
        std::size_t place = 0;
        while (place < count && offered[piece_at(drawn.split, place)]) ++place;
        return place;
    };
    while (!to_offer.empty() || random() % 4 != 0) {
        switch (random() % 4) {
            case 0: {
                if (to_offer.empty()) break;
                std::swap(to_offer[random() % to_offer.size()], to_offer.back());
                const std::size_t piece = to_offer.back();
                to_offer.pop_back();
                bench.make(piece);
                offered[piece] = true;
                const auto done = ticket.offer(piece);
                ASSERT_TRUE(done) << done.error().message;
                break;
            }
            case 1: {
                const auto done = random() % 2 == 0 ? ticket.test() : ticket.wait_for(50);
                ASSERT_TRUE(done) << done.error().message;
                break;
            }
            default: {
                const auto arrived = ticket.arrived();
                ASSERT_TRUE(arrived) << arrived.error().message;
                ASSERT_GE(*arrived, last);
                ASSERT_LE(*arrived, prefix());
                last = *arrived;
                ASSERT_EQ(bench.wrong(last, std::min(prefix(), last + 2)), "");
            }
        }
    }
}

void expect_pieces(Backend& backend, const InPieces& drawn, std::uint64_t seed) {
    Random random(seed * 64 + static_cast<std::uint64_t>(backend.rank()));
    auto executor = Executor::prepare(judged(drawn), backend, storages_of(drawn.item, backend.rank()));
    ASSERT_TRUE(executor) << executor.error().message;
    EXPECT_EQ(executor->arrival_count(), drawn.split.ends.size());
    for (int run = 0; run < runs_of_case; ++run) {
        PieceBench bench(drawn, backend.rank(), seed + static_cast<std::uint64_t>(run), executor->workspace_bytes());
        auto bound = executor->bind(bench.bench().buffers());
        ASSERT_TRUE(bound) << bound.error().message;
        const bool withheld = random() % 4 != 0;
        for (std::size_t piece = 0; piece < drawn.split.ends.size() && !withheld; ++piece) bench.make(piece);
        auto ticket = (*bound)->start({.offers_withheld = withheld});
        ASSERT_TRUE(ticket) << ticket.error().message;
        play(**ticket, bench, drawn, withheld, random);
        if (testing::Test::HasFatalFailure()) return;
        const auto done = (*ticket)->wait();
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ((*ticket)->arrived().value(), drawn.split.ends.size());
        ASSERT_EQ(bench.bench().wrong(), "");
    }
}

// A long run has 10^5 runs if ranks are threads, and a fifth of that over MPI.
std::uint64_t cases_of(int short_cases) {
    bool threads = false;
    harness().on_every_rank([&](Backend& backend) {
        if (backend.rank() == 0) threads = backend.name() == "local";
    });
    const std::uint64_t times = !test::long_run() ? 1 : threads ? 15 : 3;
    return static_cast<std::uint64_t>(test::cases(short_cases)) * times;
}

void expect_all_arrive(std::uint64_t cases, std::string (*draw)(std::uint64_t seed, Index ranks)) {
    const std::uint64_t first = std::stoull(harness().from_rank_0([] { return std::to_string(test::drawn_seed()); }));
    std::cout << fmt::format("RESHARD_SEED={}: {} plans in pieces, {} runs\n", first, cases, cases * runs_of_case);
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < cases; ++i)
        texts.push_back(harness().from_rank_0([&] { return draw(first + i, harness().ranks()); }));
    harness().on_every_rank([&](Backend& backend) {
        std::size_t steps = 0;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", first + i, texts[i]));
            const auto drawn = in_pieces_of(texts[i], first + i);
            ASSERT_TRUE(drawn);
            steps += drawn->item.plan.steps.size() > 1 ? 1 : 0;
            expect_pieces(backend, *drawn, first + i);
            if (testing::Test::HasFatalFailure()) return;
        }
        EXPECT_GT(6 * steps, texts.size());
    });
}

TEST(Pieces, ArriveWholeInAnyProgress) { expect_all_arrive(cases_of(700), drawn_in_pieces); }

// Every plan has several steps, and steps of two pieces run at once.
TEST(Pieces, ArriveWholeWhereTheSynthesizerCutsThemForTheirSteps) {
    if (harness().ranks() < 4) GTEST_SKIP() << "so few ranks have no two levels";
    expect_all_arrive(cases_of(150), chosen_in_pieces);
}

TEST(Pieces, WrongUseIsSaidAndTheRunGoesOn) {
    harness().on_every_rank([&](Backend& backend) {
        const InPieces drawn = turning();
        auto executor = Executor::prepare(judged(drawn), backend).value();
        PieceBench bench(drawn, backend.rank(), 3, executor.workspace_bytes());
        for (std::size_t piece = 0; piece < 4; ++piece) bench.make(piece);
        const auto bound = executor.bind(bench.bench().buffers()).value();
        {
            const auto ticket = bound->start().value();
            EXPECT_EQ(ticket->offer(0).error().message, "offer: the run has no offers withheld");
            EXPECT_TRUE(ticket->wait());
            EXPECT_EQ(ticket->offer(0).error().code, Code::usage);
            EXPECT_EQ(ticket->arrived().value(), 4U);
        }
        const auto ticket = bound->start({.offers_withheld = true}).value();
        EXPECT_EQ(ticket->arrived().value(), 0U);
        EXPECT_FALSE(ticket->test().value());
        EXPECT_FALSE(ticket->wait_for(60'000'000).value());  // no other rank will offer
        EXPECT_EQ(ticket->wait().error().message, "wait: piece 2 has not been offered");
        EXPECT_EQ(ticket->offer(4).error().message, "offer: there is no piece 4, the run has 4");
        ASSERT_TRUE(ticket->offer(2));
        EXPECT_EQ(ticket->offer(2).error().message, "offer: piece 2 has been offered before");
        EXPECT_EQ(ticket->wait().error().message, "wait: piece 0 has not been offered");
        EXPECT_EQ(ticket->arrived().value(), 1U);
        ASSERT_TRUE(ticket->offer(1));
        ASSERT_TRUE(ticket->offer(3));
        EXPECT_EQ(ticket->wait().error().code, Code::usage);
        EXPECT_EQ(ticket->arrived().value(), 1U);
        EXPECT_EQ(bound->start({.offers_withheld = true}).error().message,
                  "another run of this executor is still in flight");
        ASSERT_TRUE(ticket->offer(0));
        EXPECT_TRUE(ticket->wait());
        EXPECT_EQ(bench.bench().wrong(), "");
    });
}

TEST(Pieces, PeersAreToldOfARunThatIsDroppedBeforeItsOffers) {
    if (harness().ranks() == 1) GTEST_SKIP() << "one rank has no peer to tell";
    harness().on_every_rank([&](Backend& backend) {
        const InPieces drawn = turning();
        auto executor = Executor::prepare(judged(drawn), backend).value();
        PieceBench bench(drawn, backend.rank(), 3, executor.workspace_bytes());
        for (std::size_t piece = 0; piece < 4; ++piece) bench.make(piece);
        const auto bound = executor.bind(bench.bench().buffers()).value();
        const bool drops = backend.rank() + 1 == backend.size();
        auto ticket = bound->start({.offers_withheld = drops}).value();
        if (drops) {
            ASSERT_TRUE(ticket->offer(2));
            ticket.reset();
            EXPECT_NE(bound->start().error().message.find("dropped before piece 0 was offered"), std::string::npos);
        } else {
            const auto begin = Clock::now();
            const auto done = ticket->wait();
            EXPECT_LT(Clock::now() - begin, test::soon);
            ASSERT_FALSE(done);
            EXPECT_NE(done.error().message.find("dropped before piece 0 was offered"), std::string::npos)
                << done.error().message;
            EXPECT_FALSE(ticket->arrived());
            EXPECT_EQ(bench.wrong(1, 4), "");  // all ranks had offered the first piece
        }
        expect_pieces(backend, drawn, 5);  // the backend still works
    });
}

// A bucket of a list is a piece too. Buckets start when they are offered, one after the other.
TEST(Pieces, BucketsOfAListAreOfferedAndArrive) {
    ListPlan list = in_one_bucket({turning().item.plan, turning().item.plan, turning().item.plan});
    list.buckets = {{1}, {0, 2}};
    harness().on_every_rank([&](Backend& backend) {
        auto executor = Executor::prepare(judge(list), backend).value();
        EXPECT_EQ(executor.arrival_count(), 2U);
        std::vector<Workbench> benches;
        for (std::uint64_t i = 0; i < 3; ++i) benches.emplace_back(Item{list.plans[i]}, backend.rank(), i + 1, 0);
        std::vector<Buffers> buffers;
        for (Workbench& bench : benches) buffers.push_back(bench.buffers());
        const auto bound = executor.bind(buffers).value();
        const auto ticket = bound->start({.offers_withheld = true}).value();
        ASSERT_TRUE(ticket->offer(1));
        EXPECT_EQ(ticket->arrived().value(), 0U);
        EXPECT_EQ(ticket->wait().error().code, Code::usage);
        ASSERT_TRUE(ticket->offer(0));
        auto arrived = ticket->arrived();
        while (arrived && *arrived < 1) arrived = ticket->arrived();
        ASSERT_TRUE(arrived) << arrived.error().message;
        EXPECT_EQ(benches[1].wrong(), "");
        EXPECT_TRUE(ticket->wait());
        for (const Workbench& bench : benches) EXPECT_EQ(bench.wrong(), "");
    });
}

}  // namespace
}  // namespace reshard::conformance
