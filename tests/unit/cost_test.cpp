#include "reshard/planner/cost.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reshard/text.hpp"

namespace reshard {
namespace {

/// A message takes a microsecond and a byte a nanosecond; copies are free.
Machine simple() { return {"simple", {{"wire", index_max, 1'000'000, 1'000'000'000}}, index_max}; }

Index time_of(const Layout& before, const Step& step, const Machine& machine) {
    return step_picoseconds(before, step, *type_step(before, step), machine);
}

TEST(CostUnit, AStepCostsItsMessagesAndItsBytes) {
    const Mesh mesh{{"x", 4}};
    const Layout before = *parse_layout(mesh, "u8[4096@x]");
    const Step step{StepKind::all_gather, *parse_layout(mesh, "u8[4096]")};
    const Index time = time_of(before, step, simple());
    const Index bytes = 3 * 1024;
    EXPECT_GE(time, 3 * 1'000'000 + bytes * 1000);
    EXPECT_LE(time, 3 * 1'000'000 + bytes * 1000 + 4096);
}

TEST(CostUnit, ASliceCostsNoWire) {
    const Mesh mesh{{"x", 4}};
    const Layout before = *parse_layout(mesh, "u8[4096]");
    EXPECT_LT(time_of(before, {StepKind::slice, *parse_layout(mesh, "u8[4096@x]")}, simple()), 1'000'000);
}

TEST(CostUnit, TimeGrowsWithTheArrayAndSaturates) {
    const Mesh mesh{{"x", 4}};
    Index last = 0;
    for (int bits = 10; bits < 60; bits += 7) {
        const std::string extent = std::to_string(Index{1} << bits);
        const Layout before = *parse_layout(mesh, "u8[" + extent + "@x]");
        const Index time = time_of(before, {StepKind::all_gather, *parse_layout(mesh, "u8[" + extent + "]")}, simple());
        EXPECT_GE(time, last);
        EXPECT_GE(time, 0);
        last = time;
    }
    EXPECT_EQ(last, index_max);
}

TEST(CostUnit, APlanCostsTheSumOfItsSteps) {
    const Plan plan = *parse_plan(
        "mesh x=2,y=3\nsource f32[12@x]\nslice f32[12@(x,y)]\npermute f32[12@(y,x)]\n"
        "all_gather f32[12@y]\ntarget f32[12@y]\n");
    const Verdict verdict = *check(plan);
    Index sum = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        sum += step_picoseconds(layout_before(plan, i), plan.steps[i], verdict.moves[i], laptop());
    EXPECT_EQ(plan_picoseconds(plan, verdict, laptop()), sum);
    EXPECT_GT(sum, 0);
}

Index copies_of(const Mesh& mesh, const char* before, const Step& step, Index run_ps) {
    Machine machine = simple();
    machine.copy_run_ps = run_ps;
    const Layout held = *parse_layout(mesh, before);
    return step_times(held, step, *type_step(held, step), machine).copies;
}

TEST(CostUnit, ARunIsWhatBothEndsHoldInARow) {
    const Mesh mesh{{"x", 4}, {"y", 2}};
    const auto run = [&](const char* before, const char* after) {
        return copied_run(*parse_layout(mesh, before), *parse_layout(mesh, after));
    };
    EXPECT_EQ(run("u8[64@x,32]", "u8[64,32@x]"), 8);
    EXPECT_EQ(run("u8[64,32@x]", "u8[64@x,32]"), 8);
    EXPECT_EQ(run("u8[64@x,32@y,8]", "u8[64,32@(y,x),8]"), 4 * 8);
    EXPECT_EQ(run("u8[64@x,32@y]", "u8[64,32@y]"), 16 * 16);
    EXPECT_EQ(run("u8[64,32@x]", "u8[64,32]"), 8);
    EXPECT_EQ(run("u8[64@x,32]", "u8[64@x,32]"), 16 * 32);
    // Four shards become two: two devices hold what one device wants. With cuts by two and by four other axes, the
    // finer borders count.
    EXPECT_EQ(run("u8[32@(x,y)]", "u8[32@y]"), 4);
    EXPECT_EQ(run("u8[32@y]", "u8[32@x]"), 8);
    // Pieces of 2 indices out of 32, dealt in turn.
    EXPECT_EQ(run("u8[32@x/2]", "u8[32@x]"), 2);
    EXPECT_EQ(run("u8[4,32@x/2]", "u8[4@y,32@x/2]"), 2 * 8);
}

TEST(CostUnit, RunsBeyondTheFirstArePaidFor) {
    const Mesh mesh{{"x", 4}};
    const Step cut{StepKind::all_to_all, *parse_layout(mesh, "u8[64,32@x]")};
    EXPECT_EQ(copies_of(mesh, "u8[64@x,32]", cut, 1000) - copies_of(mesh, "u8[64@x,32]", cut, 0),
              (64 * 8 / 8 - 1) * 1000);
    const Step permuted{StepKind::permute, *parse_layout(Mesh{{"x", 2}, {"y", 2}}, "u8[64@(y,x)]")};
    EXPECT_EQ(copies_of(Mesh{{"x", 2}, {"y", 2}}, "u8[64@(x,y)]", permuted, 1000),
              copies_of(Mesh{{"x", 2}, {"y", 2}}, "u8[64@(x,y)]", permuted, 0));
    EXPECT_EQ(copies_of(mesh, "u8[64@x,32]", cut, index_max), index_max);
}

TEST(CostUnit, ASliceCostsTheRunsOfItsView) {
    const Mesh mesh{{"x", 4}, {"y", 2}};
    const auto cost = [&](const char* after) {
        return copies_of(mesh, "u8[64,32,8]", {StepKind::slice, *parse_layout(mesh, after)}, 1000);
    };
    EXPECT_EQ(cost("u8[64@x,32,8]"), 0);
    EXPECT_EQ(cost("u8[64,32@x,8]"), (64 - 1) * 1000);
    EXPECT_EQ(cost("u8[64,32,8@x]"), (64 * 32 - 1) * 1000);
    // The dimensions count one after another, the outermost first.
    EXPECT_EQ(cost("u8[64,32@x,8@y]"), (64 - 1 + 64 * 8 - 1) * 1000);
    EXPECT_EQ(copies_of(mesh, "u8[64,32@x,8]", {StepKind::slice, *parse_layout(mesh, "u8[64,32@x,8@y]")}, 1000),
              (64 * 8 - 1) * 1000);
    EXPECT_EQ(copies_of(mesh, "u8[64,32,8]", {StepKind::slice, *parse_layout(mesh, "u8[64,32,8@x]")}, index_max),
              index_max);
}

/// On 8 devices: the time of one meeting with many bytes, divided by the time of two meetings with fewer.
double one_over_two_meetings(Index side, const Machine& machine) {
    const auto time = [&](const char* steps) {
        const std::string words =
            "mesh a=4,b=2\nsource f64[{0}@(a,b),{0}]\n" + std::string(steps) + "target f64[{0},{0}@(b,a)]\n";
        const Plan plan = *parse_plan(fmt::format(fmt::runtime(words), side));
        return static_cast<double>(plan_picoseconds(plan, *check(plan), machine));
    };
    return time("all_gather f64[{0},{0}]\nslice f64[{0},{0}@(b,a)]\n") /
           time("all_to_all f64[{0}@a,{0}@b]\nall_to_all f64[{0},{0}@(b,a)]\n");
}

TEST(CostUnit, TheStartOfAStepDecidesFromWhichSizeOnASecondMeetingRepays) {
    Machine machine{"meetings", {{"node", index_max, 1'000'000, 50'000'000'000, 5'000'000}}, 2'000'000'000};
    // A second start of 5 us and 4 messages stand against 7 messages and the bytes of the whole array.
    EXPECT_LT(one_over_two_meetings(8, machine), 1);
    EXPECT_LT(one_over_two_meetings(16, machine), 1);
    EXPECT_GT(one_over_two_meetings(64, machine), 1);
    EXPECT_GT(one_over_two_meetings(512, machine), 1);
    machine.levels[0].start_ps = 0;
    for (const Index side : {8, 16, 64, 512}) EXPECT_GT(one_over_two_meetings(side, machine), 1) << side;
}

TEST(CostUnit, TheLaptopIsOneLevelThatReachesAll) {
    ASSERT_EQ(laptop().levels.size(), 1U);
    EXPECT_EQ(laptop().levels[0].devices, index_max);
    EXPECT_GT(laptop().copy_bytes_per_second, 0);
}

}  // namespace
}  // namespace reshard
