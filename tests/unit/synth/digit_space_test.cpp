// Digit spaces: which digits and slots a problem has, the orders of axes of mixed primes, and paths as layouts.
#include "synth/search/digit_space.hpp"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reshard/check.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "synth/search/digit_search.hpp"

namespace reshard {
namespace {

Problem between(std::string_view mesh, std::string_view source, std::string_view target) {
    const Mesh axes = *parse_mesh(mesh);
    return {*parse_layout(axes, source), *parse_layout(axes, target)};
}

std::vector<Index> extents_of(const DigitSpace& space) { return {space.extents.begin() + 1, space.extents.end()}; }

Synthesis answer(const Problem& problem, Objective objective) {
    Options options;
    options.vocabulary = Vocabulary::collectives;
    options.objective = objective;
    return *synthesize(problem, options);
}

TEST(DigitSpace, OneSlotForEachDigitThatAnEndCuts) {
    const auto space = make_digit_space(between("x=2,y=4", "f32[1024,1024@x]", "f32[1024@(x,y),1024]"), 0);
    ASSERT_TRUE(space.has_value());
    EXPECT_EQ(space->digits.size(), 3U);
    EXPECT_EQ(extents_of(*space), (std::vector<Index>{2, 2, 2, 128, 2, 512}));
    EXPECT_EQ(space->source(), 0x005U);
    EXPECT_EQ(space->target(), 0x321U);
    EXPECT_EQ(space->rests, 1U << 4 | 1U << 6);
    EXPECT_EQ(extents_of(with_one_rest(*space)), (std::vector<Index>{2, 2, 2, 128 * 512, 2}));
}

// Unreduced digits have one slot, which is no part of the tile.
TEST(DigitSpace, UnreducedDigitsShareASlot) {
    const auto space = make_digit_space(between("x=2,y=4", "f32[64@x]{U:y}", "f32[64]{U:y:(1)2}"), 0);
    ASSERT_TRUE(space.has_value());
    EXPECT_TRUE(space->sums);
    EXPECT_EQ(space->elements, 64);
    EXPECT_EQ(space->source(), 0xFF1U);
    EXPECT_EQ(space->target(), 0x0F0U);
}

// One digit leaves the dimension before digits that are more minor. No list of digits allows this: its best plan
// receives 224 elements.
TEST(DigitSpace, TheRestOfADimensionIsSplitForSums) {
    const Synthesis made = answer(between("x=2,y=4", "f32[256]{U:y}", "f32[256]{U:y:(1)2}"), Objective::bytes);
    EXPECT_EQ(made.verdict().received_bytes_max_device, 4 * 192) << format(made.plan());
    EXPECT_TRUE(made.search_complete);
}

// A digit that cuts one place at both ends never moves, whether it leads the dimension or not.
TEST(DigitSpace, KeptDigitsAreNoDigits) {
    const auto space = make_digit_space(between("a=2,b=2,c=3", "f32[96@(a,c),8]", "f32[96@(b,c),8]"), 0);
    ASSERT_TRUE(space.has_value());
    EXPECT_EQ(space->digits.size(), 2U);
    EXPECT_EQ(extents_of(*space), (std::vector<Index>{2, 16, 8}));
    EXPECT_EQ(space->elements, 2 * 16 * 8);
}

TEST(DigitSpace, RefusesWhatDigitsDoNotDescribe) {
    const auto refuses = [](std::string_view mesh, std::string_view source, std::string_view target) {
        return !make_digit_space(between(mesh, source, target), 0).has_value();
    };
    EXPECT_TRUE(refuses("x=2,y=3", "f32[12@x]", "f32[12@y]"));  // the cuts do not align
    EXPECT_TRUE(refuses("x=4", "f32[10@x]", "f32[10]"));        // 10 / 4 is uneven
    EXPECT_TRUE(refuses("x=2", "f32[8@x]", "f32[8@x]"));        // nothing moves
    EXPECT_FALSE(refuses("x=2,y=3", "f32[12@x,6]", "f32[12@x,6@y]"));
}

TEST(DigitSpace, AxesOfMixedPrimesHaveSeveralOrders) {
    EXPECT_EQ(digit_orders(between("x=8,y=4", "f32[64@x]", "f32[64@y]")), 1);
    EXPECT_EQ(digit_orders(between("x=6,y=12", "f32[72@x]", "f32[72@y]")), 2 * 3);
    EXPECT_EQ(digit_orders(between("x=6", "f32[72@x:(1)2]", "f32[72]")), 1);
    // Only 3 x 2 aligns with a cut into 3.
    const Problem problem = between("x=6,y=2", "f32[72,72@x]", "f32[72,72@x:(1)3]");
    EXPECT_EQ(digit_orders(problem), 1);
    const Problem whole = between("x=6,y=3", "f32[72@x,72]", "f32[72@y,72]");
    EXPECT_FALSE(make_digit_space(whole, 0).has_value());
    EXPECT_TRUE(make_digit_space(whole, 1).has_value());
}

// The least receives 9936 if an axis of 6 is cut as 2 x 3 alone.
TEST(DigitSpace, EveryOrderIsSearched) {
    const Problem problem = between("x=6,y=2", "f32[72@(x,y),72]", "f32[72,72@x:(3)2]");
    const Synthesis made = answer(problem, Objective::bytes);
    EXPECT_EQ(made.verdict().received_bytes_max_device, 9504) << format(made.plan());
    EXPECT_TRUE(made.search_complete);
}

TEST(DigitSpace, NeighboursThatTravelTogetherAreOneDigit) {
    const auto space = make_digit_space(between("a=1024,b=8", "f32[65536@a,65536]", "f32[65536@b,65536@a]"), 0);
    ASSERT_TRUE(space.has_value());
    EXPECT_EQ(space->digits.size(), 13U);
    EXPECT_EQ(in_fewer_digits(*space).digits.size(), 3U);
    const auto apart = make_digit_space(between("a=1024,b=1024", "f32[65536@a,65536]", "f32[65536,65536@a]"), 0);
    const DigitSpace fewer = in_fewer_digits(*apart);
    EXPECT_FALSE(apart->packs());
    ASSERT_EQ(fewer.digits.size(), 2U);
    EXPECT_EQ(fewer.digits[0].size, 1024);
    EXPECT_EQ(extents_of(fewer), (std::vector<Index>{1024, 64, 1024, 64}));
}

// A rest gets a digit of the view for each digit of the mesh that cuts it, and reuses the digits that are free.
TEST(DigitSpace, PathsAreTypedInTheirView) {
    const Problem problem = between("a=2,b=2,c=2", "f32[8@a,8]", "f32[8,8@a]");
    const auto space = make_digit_space(problem, 0);
    ASSERT_EQ(extents_of(*space), (std::vector<Index>{2, 4, 2, 4}));
    // b and c cut the rest of dimension 0. Then a and c leave for dimension 1.
    const PathInView seen = in_view(*space, {{StepKind::slice, StepKind::all_to_all}, {0x221, 0x423}});
    EXPECT_EQ(seen.parts, (std::vector<std::vector<Index>>{{2, 2, 2, 1}, {2, 2, 2}}));
    ASSERT_EQ(seen.layouts.size(), 3U);
    Plan plan{seen.layouts.front(), seen.layouts.back(), {}};
    plan.steps = {{StepKind::slice, seen.layouts[1]}, {StepKind::all_to_all, seen.layouts[2]}};
    EXPECT_TRUE(check(plan).has_value()) << format(plan);
}

// Nine digits.
TEST(DigitSpace, ManyDigitsAreSearchedWithinABudget) {
    const Problem problem = between("pod=2,dp=32,tp=8", "f32[1048576@(pod,dp),1048576@tp]", "f32[1048576,1048576@dp]");
    for (const Objective objective : {Objective::bytes, Objective::steps}) {
        const Synthesis made = answer(problem, objective);
        EXPECT_EQ(made.rule, "split_dims");
        EXPECT_EQ(made.search_complete, objective == Objective::steps);  // bytes exceed the budget
        EXPECT_LE(made.verdict().peak_bytes, made.verdict().floor_bytes);
    }
}

// A bound above the least price would end the search that is told a picosecond more than that price. Some of these
// machines make messages dear, some copies and some runs.
TEST(DigitSearch, BoundsNeverExceedTheLeastTime) {
    const Mesh mesh{{"a", 2}, {"b", 3}, {"c", 2}, {"d", 2}};
    std::mt19937 random(20261126);
    const auto one_of = [&](std::initializer_list<Index> all) { return all.begin()[random() % all.size()]; };
    const auto drawn = [&](Index rows, Index columns) {
        std::array<std::string, 3> cuts;  // the last axes cut nothing
        std::array<std::string_view, 4> axes = {"a", "b", "c", "d"};
        for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[random() % i]);
        for (const std::string_view axis : axes) {
            std::string& cut = cuts[random() % 3];
            cut += fmt::format("{}{}", cut.empty() ? "" : ",", axis);
        }
        const auto cut = [&](std::size_t i) { return cuts[i].empty() ? "" : fmt::format("@({})", cuts[i]); };
        return *parse_layout(mesh, fmt::format("f32[{}{},{}{}]", rows, cut(0), columns, cut(1)));
    };
    Index arrived = 0;
    for (int i = 0; i < 600; ++i) {
        const Index rows = one_of({24, 48, 4608});
        const Index columns = one_of({24, 96, 4608});
        const Problem problem{drawn(rows, columns), drawn(rows, columns)};
        Machine machine = laptop();
        machine.levels[0].latency_ps = one_of({0, 1'000, 1'000'000});
        machine.levels[0].bytes_per_second = one_of({2'000'000'000, 700'000'000'000});
        machine.copy_bytes_per_second = one_of({1'000'000'000, 3'000'000'000'000});
        machine.copy_run_ps = one_of({0, 100, 5'000, 1'000'000});
        const auto space = make_digit_space(problem, 0);
        if (!space) continue;
        SearchOptions options;
        options.objective = Objective::time;
        options.tile_max = std::max(tile_bytes(problem.source), tile_bytes(problem.target)) / 4;
        const DigitsFound least = search_digits(*space, options, machine);
        if (!least.complete) continue;  // over the budget
        ASSERT_TRUE(least.arrived);
        options.below = {least.price.first + 1, 0};
        const DigitsFound again = search_digits(*space, options, machine);
        ++arrived;
        EXPECT_TRUE(again.arrived && again.price == least.price)
            << format(problem.source) << " -> " << format(problem.target) << "\n"
            << format(machine);
    }
    EXPECT_GT(arrived, 200);
}

// The bound alone shows that nothing costs less, so no state is expanded.
TEST(DigitSearch, EndsAtOnceIfTheBoundIsMet) {
    const Problem problem = between("x=2,y=2", "f32[8@x,8]", "f32[8,8@x]");
    const auto space = make_digit_space(problem, 0);
    SearchOptions options;
    options.objective = Objective::steps;
    options.below = {1, 16};
    const DigitsFound found = search_digits(*space, options, laptop());
    EXPECT_TRUE(found.complete);
    EXPECT_FALSE(found.arrived);
    EXPECT_EQ(found.states, 0);
    options.hops_max = 0;
    options.below = {index_max, index_max};
    EXPECT_FALSE(search_digits(*space, options, laptop()).complete);
}

}  // namespace
}  // namespace reshard
