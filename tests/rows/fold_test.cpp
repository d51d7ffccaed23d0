// Rows of cyclic cuts: the right bytes, and few rows.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>
#include <random>

#include "reshard/text.hpp"
#include "rows/memory.hpp"
#include "src/model/fold.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

Index below(std::mt19937_64& random, Index bound) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(bound));
}

// An array on a mesh of two axes: each axis cuts a dimension or none, in blocks, in shares, or evenly.
std::string drawn_layout(std::mt19937_64& random, const std::vector<Index>& extents, bool cyclic) {
    std::vector<std::string> cuts(extents.size());
    for (const char* axis : {"x", "y"}) {
        const auto dim = static_cast<std::size_t>(below(random, std::ssize(extents) + 1));
        if (dim == extents.size() || !cuts[dim].empty()) continue;
        cuts[dim] = fmt::format("@{}", axis);
        if (cyclic) cuts[dim] += fmt::format("/{}", 1 + below(random, 5));
    }
    std::string text = "i16[";
    for (std::size_t k = 0; k < extents.size(); ++k)
        text += fmt::format("{}{}{}", k > 0 ? "," : "", extents[k], cuts[k]);
    return text + "]";
}

struct Drawn {
    Problem problem;
    Index ranks = 0;
    std::string text;
};

Drawn drawn(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Index> extents(static_cast<std::size_t>(1 + below(random, 3)));
    Index left = 400;
    for (Index& extent : extents) {
        extent = 1 + below(random, std::min<Index>(left, 60));
        left = std::max<Index>(left / extent, 1);
    }
    const bool cyclic = seed % 3 == 0;
    const auto mesh = [&] { return Mesh{{"x", 1 + below(random, 4)}, {"y", 1 + below(random, 3)}}; };
    const Mesh before = mesh();
    const Mesh after = mesh();
    const std::string source = drawn_layout(random, extents, cyclic);
    const std::string target = drawn_layout(random, extents, cyclic || seed % 3 == 1);
    return {
        {parse_layout(before, source).value(), parse_layout(after, target).value()},
        std::max(device_count(parse_layout(before, source).value()), device_count(parse_layout(after, target).value())),
        fmt::format("x={},y={} {} -> x={},y={} {}", before.axes[0].size, before.axes[1].size, source,
                    after.axes[0].size, after.axes[1].size, target)};
}

// Spells out the loops of nested rows, with one row for each run.
std::vector<Row> spelled_out(const std::vector<NestedRow>& nested) {
    std::vector<Row> rows;
    for (const NestedRow& row : nested)
        for (Index a = 0; a < row.runs[0]; ++a)
            for (Index b = 0; b < row.runs[1]; ++b)
                for (Index c = 0; c < row.runs[2]; ++c)
                    for (Index d = 0; d < row.runs[3]; ++d) {
                        const std::array<Index, 4> at = {a, b, c, d};
                        rows.push_back(
                            {row.array, row.peer,
                             std::inner_product(at.begin(), at.end(), row.source_strides.begin(), row.source_offset),
                             std::inner_product(at.begin(), at.end(), row.target_strides.begin(), row.target_offset),
                             row.run_bytes, 1, 0, 0});
                    }
    return rows;
}

// A run of bytes that both tiles have.
struct Run {
    Index target = 0;
    Index source = 0;
    Index bytes = 0;
    auto operator<=>(const Run&) const = default;
};

// The longest runs of the rows to each peer, ascending.
std::map<Index, std::vector<Run>> runs_of(const std::vector<Row>& rows) {
    std::map<Index, std::vector<Run>> all;
    for (const Row& row : rows)
        for (Index i = 0; i < row.runs; ++i)
            all[row.peer].push_back(
                {row.target_offset + i * row.target_stride, row.source_offset + i * row.source_stride, row.run_bytes});
    for (auto& [peer, runs] : all) {
        std::ranges::sort(runs);
        std::vector<Run> joined;
        for (const Run& run : runs) {
            Run* const last = joined.empty() ? nullptr : &joined.back();
            if (last != nullptr && last->target + last->bytes == run.target && last->source + last->bytes == run.source)
                last->bytes += run.bytes;
            else
                joined.push_back(run);
        }
        runs = std::move(joined);
    }
    return all;
}

// The fewest rows with one loop that hold these runs: every choice of sequences of runs at one distance.
std::size_t fewest_rows(const std::vector<Run>& runs) {
    const std::size_t count = runs.size();
    std::vector<std::uint32_t> sequences;
    for (std::size_t first = 0; first < count; ++first) {
        sequences.push_back(std::uint32_t{1} << first);
        for (std::size_t second = first + 1; second < count; ++second) {
            std::uint32_t sequence = 0;
            Run next = runs[first];
            const Index target_step = runs[second].target - next.target;
            const Index source_step = runs[second].source - next.source;
            if (source_step <= 0) continue;
            for (auto found = runs.begin(); found != runs.end();) {
                sequence |= std::uint32_t{1} << (found - runs.begin());
                next.target += target_step;
                next.source += source_step;
                found = std::ranges::find(runs, next);
            }
            sequences.push_back(sequence | std::uint32_t{1} << first);
        }
    }
    std::vector<std::size_t> fewest(std::size_t{1} << count, count);
    fewest[0] = 0;
    for (std::size_t held = 1; held < fewest.size(); ++held)
        for (const std::uint32_t sequence : sequences)
            if ((sequence >> std::countr_zero(held) & 1) != 0)
                fewest[held] = std::min(fewest[held], 1 + fewest[held & ~std::size_t{sequence}]);
    return fewest.back();
}

struct Tally {
    int pairs = 0, cyclic = 0, compared = 0, more = 0;
    std::size_t rows = 0, runs = 0;
};

void check_count(const std::vector<Row>& rows, Tally& tally) {
    std::map<Index, std::size_t> counts;
    for (const Row& row : rows) ++counts[row.peer];
    for (const auto& [peer, runs] : runs_of(rows)) {
        tally.rows += counts[peer];
        tally.runs += runs.size();
        if (runs.size() > 12) continue;
        const std::size_t fewest = fewest_rows(runs);
        EXPECT_LE(counts[peer], 2 * fewest) << runs.size() << " runs to rank " << peer;
        ++tally.compared;
        tally.more += counts[peer] > fewest;
    }
}

void check(const Drawn& one, Tally& tally) {
    const auto made = RowSchedule::make(std::span(&one.problem, 1));
    ASSERT_TRUE(made) << made.error().message;
    const Memory sources = tiles_of(one.problem.source, one.ranks, value_of_byte);
    const Memory wanted = tiles_of(one.problem.target, one.ranks, value_of_byte);
    const auto sends = all_rows(*made, one.ranks, RowSide::send);
    ASSERT_EQ(mirror_fault(sends, all_rows(*made, one.ranks, RowSide::receive)), "");
    std::vector<std::vector<Row>> nested, nested_receives;
    for (Index rank = 0; rank < one.ranks; ++rank) {
        nested.push_back(spelled_out(made->nested_rows(rank)));
        nested_receives.push_back(spelled_out(made->nested_rows(rank, RowSide::receive)));
        EXPECT_LE(made->nested_rows(rank).size(), sends[static_cast<std::size_t>(rank)].size());
    }
    ASSERT_EQ(mirror_fault(nested, nested_receives), "");
    for (const std::vector<std::vector<Row>>* rows : {&sends, &std::as_const(nested)}) {
        Memory targets = blank_of(wanted);
        auto written = counters_of(targets);
        carry_out(*rows, sources, targets, written);
        ASSERT_EQ(targets, wanted);
        for (const auto& counts : written) ASSERT_TRUE(std::ranges::all_of(counts, [](int n) { return n == 1; }));
    }
    for (const auto& rows : sends) check_count(rows, tally);
    ++tally.pairs;
    tally.cyclic += has_pieces(one.problem.source) || has_pieces(one.problem.target);
}

TEST(RowFold, MovesTheBytesInFewRows) {
    const int wanted = long_run() ? 20000 : cases(1000);
    const std::uint64_t first = drawn_seed();
    Tally tally;
    for (std::uint64_t seed = first; tally.pairs < wanted; ++seed) {
        const Drawn one = drawn(seed);
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, one.text));
        check(one, tally);
        if (testing::Test::HasFailure()) return;
    }
    std::cout << fmt::format(
        "{} pairs, wrong 0, {} cyclic: {} runs in {} rows; {} pairs of ranks beside the minimum, {} "
        "have more\n",
        tally.pairs, tally.cyclic, tally.runs, tally.rows, tally.compared, tally.more);
    EXPECT_GT(3 * tally.cyclic, tally.pairs);
    EXPECT_GT(tally.compared, tally.pairs);
}

std::pair<std::size_t, std::size_t> counts_of(const Mesh& before, const std::string& source, const Mesh& after,
                                              const std::string& target) {
    const Problem problem{parse_layout(before, source).value(), parse_layout(after, target).value()};
    const RowSchedule schedule = RowSchedule::make(std::span(&problem, 1)).value();
    std::pair<std::size_t, std::size_t> counts;
    for (Index rank = 0; rank < schedule.rank_count(); ++rank) {
        counts.first += schedule.rows(rank).size();
        counts.second += schedule.nested_rows(rank).size();
    }
    return counts;
}

TEST(RowFold, KnownCounts) {
    const auto line = [](Index ranks) { return Mesh{{"x", ranks}}; };
    const Mesh square{{"x", 2}, {"y", 2}};
    using Counts = std::pair<std::size_t, std::size_t>;
    // Tokens of a KV cache that are cyclic over 8 ranks become cyclic over 4: layers and tokens are one loop.
    EXPECT_EQ(counts_of(line(8), "bf16[8,8192@x/1,576]", line(4), "bf16[8,8192@x/1,576]"), Counts(8, 8));
    EXPECT_EQ(counts_of(line(8), "bf16[61,8192@x/1,576]", line(4), "bf16[61,8192@x/1,576]"), Counts(8, 8));
    // A period of 30 has 14 segments. Two pairs of them lie at one distance.
    EXPECT_EQ(counts_of(line(2), "f64[9000@x/3,100]", line(3), "f64[9000@x/5,100]"), Counts(14, 12));
    // Each of 16 pairs has a period and a block in both dimensions. Rows with one loop spell out the shorter loops: a
    // pair has 32 groups of 1,024 runs at one distance, and no loop is longer than a group. So 512 is the minimum.
    EXPECT_EQ(counts_of(square, "f64[4096@x/32,4096@y/32]", square, "f64[4096@x/64,4096@y/64]"), Counts(512, 16));
    EXPECT_EQ(counts_of(square, "f64[4096@x/32,4096@y/32]", line(4), "f64[4096@x/64,4096]"), Counts(256, 16));
}

// The segments of one period, as every pair of ranks sees them: at most the borders of both cuts in a period.
TEST(RowFold, RowsOfLongCutsAreCountedByThePeriod) {
    std::mt19937_64 random(drawn_seed());
    for (int i = 0; i < cases(30); ++i) {
        const Index before = 2 + below(random, 5), after = 2 + below(random, 5);
        const Index wide = 1 + below(random, 9), narrow = 1 + below(random, 9);
        const Index period = std::lcm(before * wide, after * narrow);
        const Index extent = period * (20 + below(random, 30)) + below(random, period);
        const auto text = [&](Index block) { return fmt::format("i16[{}@x/{}]", extent, block); };
        SCOPED_TRACE(fmt::format("{} on {} -> {} on {}", text(wide), before, text(narrow), after));
        const auto [flat, nested] = counts_of(Mesh{{"x", before}}, text(wide), Mesh{{"x", after}}, text(narrow));
        Index segments = 0;
        for (Index index = 0; index < period; ++index) segments += index % wide == 0 || index % narrow == 0;
        // A border may cut a period at the end in every pair.
        EXPECT_LE(static_cast<Index>(flat), segments + before * after);
        EXPECT_LE(nested, flat);
    }
}

Side drawn_side(std::mt19937_64& random, Index count) {
    Side side;
    Index at = 0;
    for (Index i = 0; i < count; ++i) {
        const Index begin = at + 1 + below(random, 7);
        at = begin + 1 + below(random, 5);
        side.intervals.push_back({begin, at});
    }
    return side;
}

TEST(RowFold, SegmentsWithoutAPeriodTakeLinearTime) {
    std::mt19937_64 random(drawn_seed());
    const Side held = drawn_side(random, 200000);
    const Side all{{{0, held.intervals.back().end}}};
    const std::vector<Segment> segments = segments_of(held, held, all);
    EXPECT_EQ(segments.size(), held.intervals.size());
    for (const Folding folding : {Folding::one_loop, Folding::two_loops}) {
        Index found = 0;
        for (const Progression& one : fold(segments, folding)) found += one.outer.count * one.inner.count;
        EXPECT_EQ(found, std::ssize(segments));
    }
}

}  // namespace
}  // namespace reshard::test
