#include "reshard/plan.hpp"

#include <gtest/gtest.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

const char* const text =
    "mesh x=2,y=3\n"
    "source f32[12@x]\n"
    "slice f32[12@(x,y)]\n"
    "permute f32[12@(y,x)]\n"
    "all_gather f32[12@y]\n"
    "target f32[12@y]\n";

TEST(PlanUnit, TheLayoutBeforeAStepIsTheOneAfterTheLast) {
    const Plan plan = *parse_plan(text);
    ASSERT_EQ(plan.steps.size(), 3U);
    EXPECT_EQ(layout_before(plan, 0), plan.source);
    EXPECT_EQ(layout_before(plan, 2), plan.steps[1].layout);
    EXPECT_EQ(layout_before(plan, 3), plan.steps[2].layout);
    EXPECT_EQ(layout_before({plan.source, plan.target, {}}, 0), plan.source);
}

TEST(PlanUnit, AFingerprintDoesNotSeeNames) {
    const Plan plan = *parse_plan(text);
    std::string renamed = text;
    for (char& letter : renamed)
        if (letter == 'y') letter = 'q';
    // No kind of step in this plan contains a y, so only the axis is renamed.
    const auto other = parse_plan(renamed);
    ASSERT_TRUE(other.has_value());
    EXPECT_NE(*other, plan);
    EXPECT_EQ(fingerprint(*other), fingerprint(plan));
}

TEST(PlanUnit, AFingerprintSeesWhatRanksDo) {
    const Plan plan = *parse_plan(text);
    Plan other = plan;
    other.steps[1].kind = StepKind::exchange;
    EXPECT_NE(fingerprint(other), fingerprint(plan));
    other = plan;
    std::swap(other.source, other.target);
    EXPECT_NE(fingerprint(other), fingerprint(plan));
}

TEST(PlanUnit, AFingerprintIsTheSameOnEveryMachine) {
    const Plan plan = *parse_plan("mesh x=2\nsource f32[4@x]\ntarget f32[4@x]\n");
    const std::uint64_t once = fingerprint(plan);
    EXPECT_NE(once, 0U);
    EXPECT_EQ(fingerprint(Plan(plan)), once);
}

TEST(PlanUnit, NodesOfOneDeviceArePlanned) {
    const Level link{"link", index_max, 40'000'000, 4'000'000'000};
    Options options;
    options.machine = {"devices", {{"core", 1, 9'000'000, 1'000'000'000}, link}, 20'000'000'000};
    Options without = options;
    without.machine.levels = {link};
    const Mesh four({{"x", 4}, {"y", 1}}, {2, 1, 0, 3});
    const Mesh six{{"x", 2}, {"y", 3}};
    const Mesh two({{"x", 2}, {"y", 1}}, {2, 1});
    const std::pair<Layout, Layout> pairs[] = {
        {*parse_layout(four, "f32[7@y,8]"), *parse_layout(two, "f32[7@(x,y),8]")},  // replicas to choose from
        {*parse_layout(four, "f32[10@x,24]"), *parse_layout(two, "f32[10,24@x]")},
        {*parse_layout(two, "f32[24,24]"), *parse_layout(two, "f32[24,24@x]")},
        {*parse_layout(six, "f32[12@x,8]{U:y}"), *parse_layout(six, "f32[12,8@y]")}};
    for (const auto& [source, target] : pairs) {
        const auto made = synthesize(source, target, options);
        ASSERT_TRUE(made) << describe(made.error());
        EXPECT_LE(made->picoseconds, synthesize(source, target, without)->picoseconds) << format(source);
    }
}

}  // namespace
}  // namespace reshard
