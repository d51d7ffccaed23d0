#include "reshard/check.hpp"

#include <gtest/gtest.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Plan three_steps() {
    return *parse_plan(
        "mesh x=2,y=3\nsource f32[12@x]\nslice f32[12@(x,y)]\npermute f32[12@(y,x)]\n"
        "all_gather f32[12@y]\ntarget f32[12@y]\n");
}

TEST(CheckUnit, AddsUpATypedPlan) {
    const auto verdict = check(three_steps());
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(verdict->moves.size(), 3U);
    EXPECT_EQ(verdict->peak_bytes, 24);
    EXPECT_EQ(verdict->floor_bytes, 24);
    EXPECT_EQ(verdict->received_bytes, 4 * (0 + 2 + 2));
    EXPECT_EQ(verdict->lower_bound_bytes, 16);
    EXPECT_EQ(verdict->footprint_bytes, 24 + 16 + 8);  // the slice is a view; the permute's result is in the workspace
}

TEST(CheckUnit, ThePlanOfNoStepsArrivesWhereItStands) {
    const Plan plan = *parse_plan("mesh x=2\nsource f32[4@x]\ntarget f32[4@x]\n");
    const auto verdict = check(plan);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(verdict->received_bytes, 0);
    EXPECT_EQ(verdict->footprint_bytes, 16);
}

TEST(CheckUnit, NamesTheStepThatIsNotTyped) {
    Plan plan = three_steps();
    plan.steps[2].kind = StepKind::slice;
    const auto verdict = check(plan);
    ASSERT_FALSE(verdict.has_value());
    EXPECT_EQ(verdict.error().code, Code::step);
    EXPECT_NE(verdict.error().message.find("step 3"), std::string::npos);
}

TEST(CheckUnit, SaysWhereAPlanEnds) {
    Plan plan = three_steps();
    plan.steps.pop_back();
    const auto verdict = check(plan);
    ASSERT_FALSE(verdict.has_value());
    EXPECT_EQ(verdict.error().code, Code::plan);
    EXPECT_NE(verdict.error().message.find("f32[12@(y,x)]"), std::string::npos);
}

TEST(CheckUnit, ALimitThatIsPassedNamesTheFloor) {
    Plan plan = *parse_plan("mesh x=2\nsource f32[8@x,2]\nall_gather f32[8,2]\nslice f32[8,2@x]\ntarget f32[8,2@x]\n");
    ASSERT_TRUE(check(plan).has_value());
    const auto verdict = check(plan, {.peak_bytes_max = 32});
    ASSERT_FALSE(verdict.has_value());
    EXPECT_EQ(verdict.error().code, Code::infeasible);
    EXPECT_NE(verdict.error().message.find("64 B"), std::string::npos);
    EXPECT_NE(verdict.error().message.find("32 B"), std::string::npos);
}

// The memory of a donated source is held to the end, whatever lies in it meanwhile.
TEST(CheckUnit, WithADonatedSourceTheLeastIsStillBothEnds) {
    const Plan plan = *parse_plan(
        "mesh x=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\nall_to_all f32[8@x,8]\nall_to_all f32[8,8@x]\n"
        "target f32[8,8@x]\n");
    EXPECT_EQ(check(plan)->footprint_bytes, 128 + 128 + 128);
    EXPECT_EQ(check(plan, {.memory = {.footprint_bytes_max = 256, .donate = true}})->footprint_bytes, 128 + 128);
    const auto refused = check(plan, {.memory = {.footprint_bytes_max = 255, .donate = true}});
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("no plan needs less than 256 B"), std::string::npos)
        << refused.error().message;
}

TEST(CheckUnit, LowerBoundsOfKnownPairs) {
    const Mesh mesh{{"x", 2}, {"w", 2}};
    const auto bound = [&](const char* source, const char* target) {
        return lower_bound(*parse_layout(mesh, source), *parse_layout(mesh, target));
    };
    EXPECT_EQ(bound("f32[8@x]", "f32[8]"), 4);
    EXPECT_EQ(bound("f32[8]", "f32[8@x]"), 0);
    EXPECT_EQ(bound("f32[8@x]", "f32[8@w]"), 4);
    // Each of 8 elements has two summands, and 4 devices want the sum: at least the whole tile.
    EXPECT_EQ(bound("f32[8]{U:w}", "f32[8]"), 8);
    EXPECT_EQ(bound("f32[8]{U:w}", "f32[8@(x,w)]"), 2);
    EXPECT_EQ(bound("f32[8]", "f32[8]{U:w}"), 0);
    // The summands stay. Each may go to its other copy by itself, or both become one: 2 receipts of each element.
    EXPECT_EQ(bound("f32[8@x]{U:w}", "f32[8]{U:w}"), 4);
    EXPECT_EQ(bound("f32[8]{U:w}", "f32[8]{U:w}"), 0);
    // Only one of the two summands is on a device that wants its element.
    EXPECT_EQ(bound("f32[8]{U:w}", "f32[8@w]{U:x}"), 2);
    // The step makes summands. For every second element, the holder does not want it.
    EXPECT_EQ(bound("f32[8@x]", "f32[8]{U:x}"), 0);
    const Mesh more{{"x", 2}, {"y", 2}, {"w", 2}};
    EXPECT_EQ(lower_bound(*parse_layout(more, "f32[4@x,4]"), *parse_layout(more, "f32[4,4@x]{U:w}")), 2);
}

TEST(CheckUnit, AVerdictIsAboutBytesOfTheElementType) {
    Plan plan = three_steps();
    for (Layout* layout :
         {&plan.source, &plan.target, &plan.steps[0].layout, &plan.steps[1].layout, &plan.steps[2].layout})
        layout->dtype = DType::c128;
    EXPECT_EQ(check(plan)->received_bytes, 4 * check(three_steps())->received_bytes);
    EXPECT_EQ(check(plan)->peak_bytes, 4 * 24);
}

// Only the judge makes a Judged, and nothing changes its contents.
template <class Value>
constexpr bool by_the_judge_alone =
    !std::is_default_constructible_v<Judged<Value>> && !std::is_aggregate_v<Judged<Value>> &&
    !std::is_constructible_v<Judged<Value>, Value>;
static_assert(by_the_judge_alone<Plan> && by_the_judge_alone<ListPlan>);
static_assert(!std::is_constructible_v<Judged<Plan>, Plan, Execution, Verdict, Limits>);
static_assert(!std::is_constructible_v<Judged<ListPlan>, ListPlan, ListVerdict, MemoryPolicy>);
static_assert(!std::is_default_constructible_v<Synthesis> && !std::is_default_constructible_v<Alternative> &&
              !std::is_default_constructible_v<ListSynthesis>);
static_assert(std::is_same_v<decltype(std::declval<Judged<Plan>&>().plan()), const Plan&>);
static_assert(std::is_same_v<decltype(std::declval<Judged<ListPlan>&>().list()), const ListPlan&>);
static_assert(std::is_copy_assignable_v<Judged<Plan>> && std::is_copy_assignable_v<Synthesis>);

TEST(JudgedUnit, HoldsWhatTheJudgeWasGivenAndSays) {
    const Limits limits{.peak_bytes_max = 24, .memory = {.donate = true}};
    const auto judged = judge(three_steps(), AsSteps{}, limits);
    ASSERT_TRUE(judged) << judged.error().message;
    EXPECT_EQ(judged->plan(), three_steps());
    EXPECT_EQ(judged->execution(), Execution(AsSteps{}));
    EXPECT_EQ(judged->verdict(), check(three_steps(), limits).value());
    EXPECT_EQ(judged->limits().memory, limits.memory);
    Plan wrong = three_steps();
    wrong.steps.pop_back();
    EXPECT_EQ(judge(wrong, AsSteps{}).error(), check(wrong).error());
}

// A moved-from Judged still has the plan that the judge passed.
TEST(JudgedUnit, IsNeverEmpty) {
    auto judged = judge(three_steps(), AsSteps{}).value();
    const Judged<Plan> moved = std::move(judged);
    EXPECT_EQ(judged.plan(), moved.plan());  // NOLINT(bugprone-use-after-move)
}

TEST(JudgedUnit, UnderOtherLimitsItIsHeldToThose) {
    const auto free = judge(three_steps(), AsSteps{}).value();
    const Index footprint = free.verdict().footprint_bytes;
    for (const bool donate : {false, true}) {
        const Index needed = check(three_steps(), {.memory = {.donate = donate}})->footprint_bytes;
        EXPECT_EQ(needed < footprint, donate);
        const auto held = within(free, {.memory = {needed, donate}});
        ASSERT_TRUE(held) << held.error().message;
        EXPECT_EQ(held->verdict().footprint_bytes, needed);
        EXPECT_EQ(held->limits().memory.footprint_bytes_max, needed);
        const Limits tight{.memory = {needed - 1, donate}};
        EXPECT_EQ(within(free, tight).error(), check(three_steps(), tight).error());
    }
}

TEST(JudgedUnit, AListOfJudgedPlansIsWhatItsPlansAre) {
    const Plan other = *parse_plan("mesh x=2\nsource f32[8@x,2]\nall_to_all f32[8,2@x]\ntarget f32[8,2@x]\n");
    const std::vector<Judged<Plan>> plans = {judge(three_steps(), AsSteps{}).value(),
                                             judge(other, AsOneExchange{}).value()};
    for (const MemoryPolicy& memory : {MemoryPolicy{}, MemoryPolicy{.donate = true}}) {
        const auto judged = judge(plans, {{1}, {0}}, memory);
        ASSERT_TRUE(judged) << judged.error().message;
        EXPECT_EQ(judged->list(), (ListPlan{{three_steps(), other}, {{1}, {0}}, {AsSteps{}, AsOneExchange{}}}));
        EXPECT_EQ(judged->verdict(), check(judged->list(), memory).value());
        EXPECT_EQ(judged->memory(), memory);
    }
    EXPECT_EQ(judge(plans, {{0}}).error().code, Code::plan);
    EXPECT_EQ(judge(plans, {{0, 1}}, {.footprint_bytes_max = 8}).error().code, Code::infeasible);
}

}  // namespace
}  // namespace reshard
