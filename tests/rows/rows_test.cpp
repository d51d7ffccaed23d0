// Rows move the same as the executor, byte for byte, and no more than necessary.
#include <gtest/gtest.h>

#include <map>

#include "reshard/backends/local.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "rows/memory.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

std::vector<Index> elements_of(const Layout& layout, Index device) {
    std::vector<Index> elements;
    for_each_element(layout, device, [&](Index, Index global) { elements.push_back(global); });
    std::ranges::sort(elements);
    return elements;
}

std::size_t common(const std::vector<Index>& a, const std::vector<Index>& b) {
    std::vector<Index> both;
    std::ranges::set_intersection(a, b, std::back_inserter(both));
    return both.size();
}

// Empty if every rank receives exactly the bytes that it lacks, and no rank sends more than its share of the demand.
std::string bound_fault(const Problem& problem, const std::vector<std::vector<Row>>& sends, Index ranks) {
    std::vector<std::vector<Index>> held, wanted;
    for (Index rank = 0; rank < ranks; ++rank) {
        held.push_back(elements_of(problem.source, rank));
        wanted.push_back(elements_of(problem.target, rank));
    }
    const auto size = static_cast<std::size_t>(size_of(problem.source.dtype));
    std::vector<std::size_t> sent(held.size(), 0), received(held.size(), 0);
    for (std::size_t rank = 0; rank < sends.size(); ++rank)
        for (const Row& row : sends[rank]) {
            if (row.peer == static_cast<Index>(rank)) continue;
            sent[rank] += static_cast<std::size_t>(row.runs * row.run_bytes);
            received[static_cast<std::size_t>(row.peer)] += static_cast<std::size_t>(row.runs * row.run_bytes);
        }
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
        const std::size_t foreign = wanted[rank].size() - common(wanted[rank], held[rank]);
        if (received[rank] != foreign * size)
            return fmt::format("rank {} receives {} bytes and lacks {}", rank, received[rank], foreign * size);
        std::size_t holders = 0, demand = 0;
        for (std::size_t other = 0; other < held.size(); ++other) {
            if (held[other] == held[rank])
                ++holders;
            else
                demand += common(wanted[other], held[rank]);
        }
        // This does not count elements that another tile has too.
        if (sent[rank] > (demand + holders - 1) / holders * size)
            return fmt::format("rank {} sends {} bytes, {} holders of {} wanted", rank, sent[rank], holders,
                               demand * size);
    }
    return "";
}

struct Tally {
    int problems = 0, uneven = 0, replicated = 0, two_meshes = 0, empty = 0;
    std::map<DType, int> dtypes;
};

void compare(const Problem& problem, Index ranks, Tally& tally) {
    const auto made = RowSchedule::make(std::span(&problem, 1));
    ASSERT_TRUE(made) << made.error().message;
    const auto sends = all_rows(*made, ranks, RowSide::send);
    ASSERT_EQ(mirror_fault(sends, all_rows(*made, ranks, RowSide::receive)), "");
    const Memory sources = tiles_of(problem.source, ranks, value_of_byte);
    local::World world(ranks);
    const auto wanted = local::redistribute(world, problem.source, problem.target, sources);
    ASSERT_TRUE(wanted) << wanted.error().message;
    Memory targets = blank_of(*wanted);
    auto written = counters_of(targets);
    carry_out(sends, sources, targets, written);
    ASSERT_EQ(targets, *wanted);
    for (const auto& counts : written) ASSERT_TRUE(std::ranges::all_of(counts, [](int n) { return n == 1; }));
    ASSERT_EQ(bound_fault(problem, sends, ranks), "");
    ++tally.problems;
    tally.uneven += !divides(problem.source) || !divides(problem.target);
    tally.replicated += combinations(used_atoms(problem.source)) < device_count(problem.source);
    tally.two_meshes += !same_order(problem.source.mesh, problem.target.mesh);
    tally.empty += global_bytes(problem.source) == 0;
    ++tally.dtypes[problem.source.dtype];
}

TEST(Rows, MoveWhatTheExecutorMoves) {
    const int wanted = long_run() ? 20000 : cases(1000);
    const std::uint64_t first = drawn_seed();
    Tally tally;
    for (std::uint64_t seed = first; tally.problems < wanted; ++seed) {
        const Index ranks = 1 + static_cast<Index>(seed % 12);
        const std::string question = random_question(seed, ranks);
        Problem problem = problem_of(question);
        if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty()) continue;
        problem.source.dtype = problem.target.dtype = static_cast<DType>(seed / 12 % 17);
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, question));
        compare(problem, ranks, tally);
        if (testing::Test::HasFatalFailure()) return;
    }
    std::cout << fmt::format("{} problems, wrong 0: {} uneven, {} replicated, {} on two meshes, {} empty, {} dtypes\n",
                             tally.problems, tally.uneven, tally.replicated, tally.two_meshes, tally.empty,
                             tally.dtypes.size());
    EXPECT_EQ(tally.dtypes.size(), 17U);
    for (const int met : {tally.uneven, tally.replicated, tally.two_meshes}) EXPECT_GT(10 * met, tally.problems);
}

}  // namespace
}  // namespace reshard::test
