// Compares the cuts of a transfer and the work beside it with all cuts in all orders.
#include "synth/overlap/cuts.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/time.hpp"

namespace reshard {
namespace {

std::vector<std::size_t> ascending(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    return order;
}

// The least time of all cuts at any indices: in ascending order, and in any order.
struct Least {
    Index ascending = index_max;
    Index any_order = index_max;
};

Least least_of_all(const OverlapTimes& times, Index extent, Index pieces_max) {
    Least least;
    for (Index mask = 0; mask < Index{1} << (extent - 1); ++mask) {
        std::vector<Index> ends;
        for (Index i = 1; i < extent; ++i) {
            if ((mask >> (i - 1) & 1) != 0) ends.push_back(i);
        }
        ends.push_back(extent);
        if (static_cast<Index>(ends.size()) > pieces_max) continue;
        std::vector<std::size_t> order = ascending(ends.size());
        least.ascending = std::min(least.ascending, overlapped_time(times, extent, ends, order));
        do {
            least.any_order = std::min(least.any_order, overlapped_time(times, extent, ends, order));
        } while (std::ranges::next_permutation(order).found);
    }
    return least;
}

// Work with a constant part and a part per index, which may differ from index to index.
OverlapTimes random_times(std::mt19937& random, Index extent) {
    const auto below = [&](Index bound) { return static_cast<Index>(random() % static_cast<unsigned>(bound)); };
    OverlapTimes times;
    times.run.alone = {below(60), 1 + below(2000)};
    times.run.behind = {times.run.alone};
    // Steps of pieces overlap: each part of the transfer keeps another resource busy.
    for (Index parts = below(4); parts > 0; --parts) {
        if (parts == 3) times.run.behind.clear();
        times.run.behind.push_back(
            {below(times.run.alone.once + 1), times.run.alone.whole / 2 + below(times.run.alone.whole / 2 + 1)});
    }
    times.slowed_percent = below(2) == 0 ? 100 : 100 + below(80);
    times.work_first = below(2) == 0;
    if (!times.work_first && below(2) == 0) times.before = below(900);
    std::vector<Index> work{0};
    const Index each = 1 + below(400);
    const bool alike = below(2) == 0;
    for (Index i = 0; i < extent; ++i) work.push_back(work.back() + (alike ? each : below(2 * each)));
    times.work = [work, constant = below(80)](Index begin, Index end) {
        return constant + work[static_cast<std::size_t>(end)] - work[static_cast<std::size_t>(begin)];
    };
    return times;
}

TEST(Cuts, AsGoodAsAllCuts) {
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        const Index extent = 1 + static_cast<Index>(random() % 7);
        const Index pieces_max = 1 + static_cast<Index>(random() % 6);
        const OverlapTimes times = random_times(random, extent);
        const Cuts cuts = best_cuts(times, extent, 64, pieces_max);
        const Least least = least_of_all(times, extent, pieces_max);
        SCOPED_TRACE(fmt::format("{}: ends {} order {}", i, cuts.ends, cuts.order));
        // States that differ by less than a part in 2^10 count as one.
        const Index whole = picoseconds_of(times.run.alone, 1, 1, 1) + times.work(0, extent);
        ASSERT_LE(cuts.time, least.ascending + pieces_max * (whole / 1024));
        ASSERT_GE(cuts.time, least.any_order);
        ASSERT_EQ(cuts.time, overlapped_time(times, extent, cuts.ends, cuts.order)) << "what is said is so";
        ASSERT_LE(static_cast<Index>(cuts.ends.size()), pieces_max);
        ASSERT_EQ(cuts.ends.back(), extent);
    }
}

// Equal pieces that end at the same places are no better, whatever their number, and neither is a run without overlap.
TEST(Cuts, NoWorseThanEqualPieces) {
    std::mt19937 random(6);
    for (int i = 0; i < 20; ++i) {
        const Index extent = 48;
        const OverlapTimes times = random_times(random, extent);
        const Cuts cuts = best_cuts(times, extent, 48, 16);
        for (const Index pieces : {1, 2, 3, 4, 6, 8, 12, 16}) {
            std::vector<Index> ends;
            for (Index k = 1; k <= pieces; ++k) ends.push_back(extent * k / pieces);
            ASSERT_LE(cuts.time, overlapped_time(times, extent, ends, ascending(ends.size()))) << i << ": " << pieces;
        }
    }
}

// Transfer and work take equally long. Many pieces take close to half of both together; dear pieces are few.
TEST(Cuts, FewerWherePiecesAreDear) {
    OverlapTimes times;
    const auto transfer = [&](Index piece, Index whole) { times.run = {{piece, whole}, {{piece, whole}}}; };
    transfer(0, 1'000'000);
    times.work = [](Index begin, Index end) { return (end - begin) * 1000; };
    const Cuts cheap = best_cuts(times, 1000, 64, 32);
    EXPECT_LT(cheap.time, 1'050'000);
    transfer(100'000, 1'000'000);
    const Cuts dear = best_cuts(times, 1000, 64, 32);
    EXPECT_GT(dear.time, cheap.time);
    EXPECT_LT(dear.ends.size(), cheap.ends.size());
    transfer(2'000'000, 1'000'000);
    EXPECT_EQ(best_cuts(times, 1000, 64, 32).ends, std::vector<Index>{1000}) << "one piece";
}

// Work that a transfer slows ends at another picosecond for nearly every cut. Cuts that differ by less than counts are
// treated as one; otherwise the search would not end.
TEST(Cuts, SlowedWorkIsCutInTime) {
    for (const bool work_first : {true, false}) {
        OverlapTimes times;
        times.run = {{40'000'000, 85'000'000'000}, {{60'000'000, 84'000'000'000}}};
        times.slowed_percent = 121;
        times.work_first = work_first;
        times.work = [](Index begin, Index end) { return (end - begin) * 33'931'000; };
        const double begin = test::cpu_seconds();
        const Cuts cuts = steady_cuts(times, 2564, 64, 32);
        EXPECT_LT(test::cpu_seconds() - begin, 60) << cuts.ends.size() << " pieces";
        for (const Index pieces : {2, 4, 8, 16, 32}) {
            std::vector<Index> ends;
            for (Index k = 1; k <= pieces; ++k) ends.push_back(2564 * (64 * k / pieces) / 64);
            const Index equal = overlapped_time(times, 2564, ends, ascending(ends.size()));
            EXPECT_LE(cuts.time, equal + equal / 50) << pieces;
        }
    }
}

// If work takes longer than predicted, cuts balanced to the picosecond end far later than equal ones.
TEST(Cuts, SteadyOnesSufferLittle) {
    for (const bool work_first : {true, false}) {
        OverlapTimes times;
        times.run = {{40'000, 268'000'000}, {{40'000, 268'000'000}}};
        times.slowed_percent = 120;
        times.work_first = work_first;
        times.work = [](Index begin, Index end) { return (end - begin) * 33'000; };
        OverlapTimes longer = times;
        longer.work = [](Index begin, Index end) { return (end - begin) * 43'000; };
        const Cuts best = best_cuts(times, 4096, 64, 32);
        const Cuts steady = steady_cuts(times, 4096, 64, 32);
        EXPECT_LE(steady.time, best.time + best.time / 50);
        EXPECT_EQ(steady.time, overlapped_time(times, 4096, steady.ends, steady.order)) << "what is said is so";
        EXPECT_LT(overlapped_time(longer, 4096, steady.ends, steady.order),
                  overlapped_time(longer, 4096, best.ends, best.order));
    }
}

// The first piece arrives late, and its work is short: the order of Johnson's rule beats the ascending order.
TEST(Cuts, OrderCounts) {
    OverlapTimes times;
    times.run = {{0, 1000}, {{0, 1000}}};
    times.work = [](Index begin, Index end) {
        const auto before = [](Index i) { return i <= 500 ? 0 : (i - 500) * 2; };  // all work is in the upper half
        return before(end) - before(begin);
    };
    const Cuts cuts = best_cuts(times, 1000, 20, 20);
    EXPECT_FALSE(std::ranges::is_sorted(cuts.order));
    EXPECT_LT(cuts.time, 1100);
}

}  // namespace
}  // namespace reshard
