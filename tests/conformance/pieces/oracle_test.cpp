// Drives all ranks of the local backend in one thread, to check every state between two calls. A piece that has arrived
// is whole. A piece that some rank has not offered is written nowhere. Every offered piece arrives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <iostream>
#include <numeric>

#include "drawn.hpp"
#include "reshard/backends/local.hpp"
#include "reshard/check.hpp"
#include "support/property.hpp"
#include "support/time.hpp"

namespace reshard::conformance {
namespace {

using Random = std::mt19937_64;

constexpr Index ranks_max = 6;

// One rank of a run.
struct Player {
    std::optional<Executor> executor;
    std::optional<PieceBench> bench;
    std::unique_ptr<Bound> bound;
    std::unique_ptr<Ticket> ticket;
    std::vector<std::size_t> to_offer;
    std::size_t arrived = 0;
};

class Game {
public:
    Game(const InPieces& drawn, Index ranks, std::uint64_t seed)
        : drawn_(drawn), world_(ranks), random_(seed), players_(static_cast<std::size_t>(ranks)) {
        const auto judged = judge(drawn.item.plan, drawn.split).value();
        for (Index rank = 0; rank < ranks; ++rank) {
            Player& player = players_[static_cast<std::size_t>(rank)];
            player.executor = Executor::prepare(judged, world_.rank(rank), storages_of(drawn.item, rank)).value();
            player.bench.emplace(drawn, rank, seed, player.executor->workspace_bytes());
            player.bound = player.executor->bind(player.bench->bench().buffers()).value();
        }
        for (Player& player : players_) begin(player);
    }

    void play() {
        // With so many random moves, every move is made in the end.
        for (int moves = 0; !is_over(); ++moves) {
            ASSERT_LT(moves, 100'000);
            move(players_[random_() % players_.size()]);
            if (testing::Test::HasFatalFailure()) return;
        }
        for (Player& player : players_) {
            const auto done = player.ticket->wait();
            ASSERT_TRUE(done) << done.error().message;
            ASSERT_EQ(player.bench->bench().wrong(), "");
        }
    }

private:
    [[nodiscard]] std::size_t pieces() const { return drawn_.split.ends.size(); }
    [[nodiscard]] bool is_over() const {
        return std::ranges::all_of(players_, [&](const Player& one) { return one.arrived == pieces(); });
    }
    // The number of leading pieces, in travelling order, that all ranks have offered.
    [[nodiscard]] std::size_t offered() const {
        std::size_t place = 0;
        const auto withheld = [&](const Player& one) {
            return std::ranges::find(one.to_offer, piece_at(drawn_.split, place)) != one.to_offer.end();
        };
        while (place < pieces() && std::ranges::none_of(players_, withheld)) ++place;
        return place;
    }

    void begin(Player& player) {
        const bool withheld = random_() % 4 != 0;
        if (withheld) {
            player.to_offer.resize(pieces());
            std::iota(player.to_offer.begin(), player.to_offer.end(), std::size_t{0});
        }
        for (std::size_t piece = 0; piece < pieces() && !withheld; ++piece) player.bench->make(piece);
        player.ticket = player.bound->start({.offers_withheld = withheld}).value();
    }

    void move(Player& player) {
        const auto kind = random_() % 4;
        if (kind == 0 && !player.to_offer.empty()) {
            std::swap(player.to_offer[random_() % player.to_offer.size()], player.to_offer.back());
            const std::size_t piece = player.to_offer.back();
            player.to_offer.pop_back();
            player.bench->make(piece);
            ASSERT_TRUE(player.ticket->offer(piece));
        } else if (kind == 1) {
            ASSERT_TRUE(player.ticket->test());
        } else {
            look(player);
        }
        const Player& any = players_[random_() % players_.size()];
        ASSERT_EQ(any.bench->wrong(any.arrived, offered()), "");
    }

    void look(Player& player) {
        const auto arrived = player.ticket->arrived();
        ASSERT_TRUE(arrived) << arrived.error().message;
        ASSERT_GE(*arrived, player.arrived);
        ASSERT_LE(*arrived, offered());
        player.arrived = *arrived;
        ASSERT_EQ(player.bench->wrong(player.arrived, std::min(offered(), player.arrived + 2)), "");
    }

    const InPieces& drawn_;
    local::World world_;
    Random random_;
    std::vector<Player> players_;
};

bool reduces(const Step& step) { return step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce; }

TEST(PiecesOracle, WhatHasArrivedIsWholeAndNothingElseIsWritten) {
    const auto cases = static_cast<std::uint64_t>(test::cases(2'000)) * (test::long_run() ? 10 : 1);
    const std::uint64_t first = test::drawn_seed();
    std::cout << fmt::format("RESHARD_SEED={}\n", first);
    std::size_t several_steps = 0;
    std::size_t reducing = 0;
    std::size_t cut_boxes = 0;
    for (std::uint64_t seed = first; seed < first + cases; ++seed) {
        const Index ranks = 2 + static_cast<Index>(seed % (ranks_max - 1));
        const std::string text = drawn_in_pieces(seed, ranks);
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, text));
        const auto drawn = in_pieces_of(text, seed);
        ASSERT_TRUE(drawn);
        const Plan& plan = drawn->item.plan;
        several_steps += plan.steps.size() > 1 ? 1 : 0;
        reducing += std::ranges::any_of(plan.steps, reduces) ? 1 : 0;
        Split in_one = drawn->split;
        in_one.overlapped = false;
        cut_boxes += check(plan, in_one) ? 0 : 1;
        Game(*drawn, ranks, seed).play();
        if (testing::Test::HasFatalFailure()) return;
    }
    std::cout << fmt::format("{} runs: {} of several steps, {} that reduce, {} cut box by box\n", cases, several_steps,
                             reducing, cut_boxes);
    EXPECT_GT(10 * several_steps, cases);
    EXPECT_GT(20 * reducing, cases);
    EXPECT_GT(20 * cut_boxes, cases);
}

TEST(PiecesOracle, StepsThatTheSynthesizerOverlapsDoWhatTheyDoOneByOne) {
    const auto cases = static_cast<std::uint64_t>(test::cases(500)) * (test::long_run() ? 10 : 1);
    const std::uint64_t first = test::drawn_seed();
    std::cout << fmt::format("RESHARD_SEED={}\n", first);
    std::size_t reducing = 0;
    for (std::uint64_t seed = first; seed < first + cases; ++seed) {
        const Index ranks = seed % 2 == 0 ? 4 : 6;
        const std::string text = chosen_in_pieces(seed, ranks);
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, text));
        const auto drawn = in_pieces_of(text, seed);
        ASSERT_TRUE(drawn);
        ASSERT_GT(drawn->item.plan.steps.size(), 1U);
        reducing += std::ranges::any_of(drawn->item.plan.steps, reduces) ? 1 : 0;
        Game(*drawn, ranks, seed).play();
        if (testing::Test::HasFatalFailure()) return;
    }
    std::cout << fmt::format("{} runs, {} that reduce\n", cases, reducing);
}

TEST(PiecesOracle, AnOfferThatNeverComesEndsTheRunOfItsPeers) {
    const Mesh mesh{{"x", 2}};
    const Layout rows = make_layout(mesh, DType::f32, {8, 8}, P{"x", {}}).value();
    const Layout columns = make_layout(mesh, DType::f32, {8, 8}, P{{}, "x"}).value();
    const InPieces drawn{{{rows, columns, {{StepKind::all_to_all, columns}}}}, {0, 4, {1, 4}, {}, true}};
    local::World world(2, {.timeout = std::chrono::milliseconds(200)});
    std::array<Player, 2> players;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        Player& player = players.at(rank);
        const auto judged = judge(drawn.item.plan, drawn.split).value();
        player.executor = Executor::prepare(judged, world.rank(static_cast<Index>(rank))).value();
        player.bench.emplace(drawn, static_cast<Index>(rank), 1, 0);
        for (const std::size_t piece : {0U, 1U}) player.bench->make(piece);
        player.bound = player.executor->bind(player.bench->bench().buffers()).value();
        player.ticket = player.bound->start({.offers_withheld = rank == 1}).value();
    }
    auto& [waits, silent] = players;
    ASSERT_TRUE(silent.ticket->offer(1));  // piece 0 travels first and is never offered
    const auto begin = std::chrono::steady_clock::now();
    const auto done = waits.ticket->wait();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, test::soon);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "rank 0 waited 200 ms for rank 1, which never started");
    EXPECT_EQ(waits.bench->wrong(0, 0), "");
    EXPECT_FALSE(silent.ticket->offer(0));
}

}  // namespace
}  // namespace reshard::conformance
