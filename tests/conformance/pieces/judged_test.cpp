// Statements about pieces before anything runs. The schedules of the pieces make up the plan's schedules, and all
// pieces together mean the same as the plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>

#include "drawn.hpp"
#include "reshard/check.hpp"
#include "reshard/planner/simulate.hpp"
#include "src/plan/split_run.hpp"
#include "src/schedule/piece_schedule.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

constexpr Index ranks = 6;

// Calls visit(seed, drawn) for plans with pieces that are plans themselves, or with pieces cut box by box.
template <class Visit>
void each(bool plans, int cases, const Visit& visit) {
    const std::uint64_t first = test::drawn_seed();
    int left = cases;
    for (std::uint64_t seed = first; left > 0; ++seed) {
        const std::string text = drawn_in_pieces(seed, ranks);
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, text));
        const auto drawn = in_pieces_of(text, seed);
        ASSERT_TRUE(drawn);
        if (keeps_blocks(drawn->split, drawn->item.plan) != plans) continue;
        --left;
        visit(seed, *drawn);
        if (testing::Test::HasFatalFailure()) return;
    }
}

// Calls visit(place in the whole, place in the piece) for every element of a rank's piece.
template <class Visit>
void each_element(const Layout& whole, const Layout& part, const Split& split, std::size_t piece, Index rank,
                  const Visit& visit) {
    const Storage storage = storage_of(row_major(tile(whole, rank)), split, piece);
    const std::vector<Index> sides = extents(tile(part, rank));
    for (Index i = 0; i < count(tile(part, rank)); ++i) {
        Index rest = i;
        Index place = storage.offset;
        for (std::size_t k = sides.size(); k-- > 0;) {
            place += rest % sides[k] * storage.strides[k];
            rest /= sides[k];
        }
        visit(static_cast<std::size_t>(place), static_cast<std::size_t>(i));
    }
}

TEST(PiecesJudged, AllPiecesTogetherMeanWhatThePlanMeans) {
    each(true, test::cases(400), [](std::uint64_t, const InPieces& drawn) {
        const Plan& plan = drawn.item.plan;
        Index elements = 1;
        for (const Dim& dim : plan.source.dims) elements *= dim.extent;
        std::vector<std::int64_t> array(static_cast<std::size_t>(elements));
        std::iota(array.begin(), array.end(), 1);
        const Tiles from = distribute(plan.source, array).value();
        const Tiles wanted = simulate(plan, from).value();
        Tiles got = wanted;
        for (auto& values : got) std::ranges::fill(values, -1);
        for (std::size_t piece = 0; piece < drawn.split.ends.size(); ++piece) {
            const Plan part = plan_of_piece(plan, drawn.split, piece);
            ASSERT_TRUE(check(part));
            Tiles tiles(from.size());
            for (std::size_t rank = 0; rank < from.size(); ++rank) {
                tiles[rank].resize(static_cast<std::size_t>(count(tile(part.source, static_cast<Index>(rank)))));
                each_element(plan.source, part.source, drawn.split, piece, static_cast<Index>(rank),
                             [&](std::size_t whole, std::size_t own) { tiles[rank][own] = from[rank][whole]; });
            }
            const Tiles moved = simulate(part, tiles).value();
            for (std::size_t rank = 0; rank < moved.size(); ++rank)
                each_element(plan.target, part.target, drawn.split, piece, static_cast<Index>(rank),
                             [&](std::size_t whole, std::size_t own) {
                                 ASSERT_EQ(got[rank][whole], -1);  // pieces do not overlap
                                 got[rank][whole] = moved[rank][own];
                             });
        }
        EXPECT_EQ(got, wanted);
    });
}

std::vector<Schedule> parts_of(const Schedule& whole, const Split& split) {
    std::vector<Schedule> parts;
    for (std::size_t piece = 0; piece < split.ends.size(); ++piece) parts.push_back(schedule_of(whole, split, piece));
    return parts;
}

TEST(PiecesJudged, SchedulesOfPiecesAreThePartsOfTheWhole) {
    std::size_t refused = 0;
    each(false, test::cases(200), [&](std::uint64_t seed, const InPieces& drawn) {
        const Plan& plan = drawn.item.plan;
        for (Index rank = 0; rank < ranks && !plan.steps.empty(); ++rank) {
            const Schedule whole = schedule(plan.source, plan.steps[0], rank, plan.network);
            const std::vector<Schedule> parts = parts_of(whole, drawn.split);
            const auto verdict = check_pieces(whole, drawn.split, parts);
            ASSERT_TRUE(verdict) << verdict.error().message;
            EXPECT_FALSE(check_pieces(whole, drawn.split, std::span(parts).first(parts.size() - 1)));
            const auto has = [](const Schedule& one) { return !one.receives.empty(); };
            const auto some = std::ranges::find_if(parts, has);
            if (some == parts.end()) continue;
            const auto at = static_cast<std::size_t>(some - parts.begin());
            for (int damage = 0; damage < 4; ++damage) {
                std::vector<Schedule> damaged = parts;
                std::vector<Transfer>& receives = damaged[at].receives;
                Transfer one = receives[seed % receives.size()];
                if (damage == 0) receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(seed % receives.size()));
                if (damage == 1) receives.push_back(one);
                if (damage == 2) receives[seed % receives.size()].peer += ranks;
                if (damage == 3 && damaged.size() > 1) std::swap(damaged[at], damaged[(at + 1) % damaged.size()]);
                if (damage == 3 && damaged.size() == 1) receives.clear();
                const auto against = check_pieces(whole, drawn.split, damaged);
                ASSERT_FALSE(against) << damage;
                EXPECT_EQ(against.error().code, Code::plan);
                ++refused;
            }
        }
    });
    EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace reshard::conformance
