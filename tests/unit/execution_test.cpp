// How plans run: the choice for each backend and memory limit, and the part that ranks must agree on.
#include "reshard/execution.hpp"

#include <gtest/gtest.h>

#include <set>

#include "reshard/planner/list.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

constexpr Capabilities one_node{.one_exchange = true};

// Source and target of 128 bytes each, with 128 bytes of workspace between.
Plan turns() {
    return *parse_plan(
        "mesh x=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\nall_to_all f32[8@x,8]\nall_to_all f32[8,8@x]\n"
        "target f32[8,8@x]\n");
}

// Source and target of 256 bytes each, with 128 bytes of workspace between.
Plan reduces() {
    return *parse_plan(
        "mesh x=2\nsource f32[8,8]{U:x}\nreduce_scatter f32[8@x,8]\nall_gather f32[8,8]\ntarget f32[8,8]\n");
}

TEST(ExecutionUnit, WhereRanksShareANodeWhatReducesNothingIsOneExchange) {
    EXPECT_EQ(choose_execution(turns(), one_node), Execution(AsOneExchange{}));
    EXPECT_EQ(choose_execution(turns(), {}), Execution(AsSteps{}));
    EXPECT_EQ(choose_execution(reduces(), one_node), Execution(AsSteps{}));
    EXPECT_EQ(choose_execution(turns(), one_node, {}, Vocabulary::collectives), Execution(AsSteps{}));
    Plan gathers{turns().source, *parse_layout(turns().source.mesh, "f32[8,8]"), {}};
    gathers.steps = {{StepKind::all_gather, gathers.target}};
    EXPECT_EQ(choose_execution(gathers, one_node), Execution(AsSteps{}));  // as good as the exchange
    gathers.steps = {{StepKind::exchange, gathers.target}};
    EXPECT_EQ(choose_execution(gathers, one_node), Execution(AsOneExchange{}));
}

TEST(ExecutionUnit, WhatDoesNotFitIsOneExchangeOrSplit) {
    EXPECT_EQ(choose_execution(turns(), {}, {.footprint_bytes_max = 384}), Execution(AsSteps{}));
    EXPECT_EQ(choose_execution(turns(), {}, {.footprint_bytes_max = 383}), Execution(AsOneExchange{}));
    EXPECT_EQ(choose_execution(turns(), {}, {.footprint_bytes_max = 383, .donate = true}), Execution(AsSteps{}));
    EXPECT_EQ(choose_execution(turns(), {}, {.footprint_bytes_max = 384, .staging_bytes = 1}),
              Execution(AsOneExchange{}));
    EXPECT_EQ(choose_execution(reduces(), {}, {.footprint_bytes_max = 640}), Execution(AsSteps{}));
    EXPECT_EQ(piece_count(choose_execution(reduces(), {}, {.footprint_bytes_max = 639})), 2);
    EXPECT_EQ(piece_count(choose_execution(reduces(), {}, {.footprint_bytes_max = 512 + 16})), 8);
    EXPECT_EQ(choose_execution(reduces(), {}, {.footprint_bytes_max = 512}), Execution(AsSteps{}));  // it cannot fit
    // In pieces, both tiles between the steps lie in the workspace.
    EXPECT_EQ(piece_count(choose_execution(turns(), {}, {.footprint_bytes_max = 383}, Vocabulary::collectives)), 4);
}

TEST(ExecutionUnit, WhatIsNoPlanIsLeftToTheJudge) {
    Plan broken = turns();
    broken.steps.pop_back();
    EXPECT_EQ(choose_execution(broken, one_node, {.footprint_bytes_max = 1}), Execution(AsSteps{}));
    EXPECT_EQ(check(broken, AsOneExchange{}).error().code, Code::plan);
    EXPECT_EQ(check(reduces(), AsOneExchange{}).error().code, Code::plan);
    ListPlan list = in_one_bucket({turns(), reduces()});
    list.executions = {AsSteps{}};
    EXPECT_EQ(check(list).error().code, Code::plan);
    list.executions = {AsSteps{}, AsOneExchange{}};
    EXPECT_EQ(check(list).error().message.substr(0, 9), "array 1: ");
}

TEST(ExecutionUnit, AsOneExchangeTheVerdictIsThatOfTheExchange) {
    const Plan plan = turns();
    const auto verdict = check(plan, AsOneExchange{});
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_EQ(*verdict, check(*as_one_exchange(plan)).value());
    EXPECT_EQ(verdict->footprint_bytes, 256);
    EXPECT_EQ(verdict->received_bytes_max_device, verdict->lower_bound_bytes);
}

// A plan gets the memory that its bucket leaves beside the sources and targets held while it runs.
TEST(ExecutionUnit, PlansOfAListAreChosenByTheirBucket) {
    ListPlan list = in_one_bucket({turns(), reduces()});
    const MemoryPolicy memory{.footprint_bytes_max = 256 + 512 + 64};
    const ListPlan chosen = choose_executions(list, {}, memory);
    ASSERT_EQ(chosen.executions.size(), 2U);
    EXPECT_EQ(chosen.executions[0], Execution(AsOneExchange{}));
    EXPECT_EQ(piece_count(chosen.executions[1]), 2);
    EXPECT_FALSE(check(list, memory));
    EXPECT_EQ(check(chosen, memory)->footprint_bytes, *memory.footprint_bytes_max);
    list.buckets = {{0, 1}, {1}};
    EXPECT_EQ(choose_executions(list, one_node, memory), list);
}

TEST(ExecutionUnit, WhatRanksMustAgreeOnIsInTheFingerprint) {
    const Plan plan = turns();
    EXPECT_EQ(fingerprint(plan, AsSteps{}), fingerprint(plan));
    std::set<std::uint64_t> all;
    const std::vector<Execution> executions = {
        AsSteps{},           AsOneExchange{},     even_split(0, 4, 2),         even_split(0, 4, 1),
        even_split(1, 4, 2), Split{0, 4, {1, 4}}, Split{0, 4, {1, 4}, {1, 0}}, Split{0, 4, {1, 4}, {}, true}};
    const std::vector<MemoryPolicy> policies = {{},
                                                {.footprint_bytes_max = 0},
                                                {.footprint_bytes_max = 4096},
                                                {.footprint_bytes_max = 4096, .donate = true},
                                                {.donate = true},
                                                {.footprint_bytes_max = 4096, .staging_bytes = 64}};
    for (const Execution& execution : executions)
        for (const MemoryPolicy& memory : policies) {
            all.insert(fingerprint(plan, execution, memory));
            ListPlan list = in_one_bucket({plan, plan});
            list.executions = {AsSteps{}, execution};
            all.insert(fingerprint(list, memory));
        }
    EXPECT_EQ(all.size(), 2 * executions.size() * policies.size());
}

TEST(ExecutionUnit, AnOrderThatIsSaidOrNotIsOne) {
    EXPECT_EQ(fingerprint(turns(), Split{0, 4, {1, 4}, {0, 1}}), fingerprint(turns(), Split{0, 4, {1, 4}}));
}

TEST(ExecutionUnit, AnExecutionIsText) {
    const std::vector<std::pair<const char*, Execution>> all = {
        {"steps", AsSteps{}},
        {"one_exchange", AsOneExchange{}},
        {"split dim 1 block 64 ends 16,40,64", Split{1, 64, {16, 40, 64}}},
        {"split dim 0 block 3 ends 1,2,3 order 2,0,1 overlapped", Split{0, 3, {1, 2, 3}, {2, 0, 1}, true}},
        {"split dim 0 block 9223372036854775807 ends 9223372036854775807 overlapped",
         Split{0, index_max, {index_max}, {}, true}}};
    for (const auto& [text, execution] : all) {
        EXPECT_EQ(format(execution), text);
        EXPECT_EQ(parse_execution(text).value(), execution);
    }
    const std::vector<std::pair<const char*, std::size_t>> wrong = {
        {"", 0},
        {"stages", 0},
        {"steps 1", 6},
        {"split 0", 6},
        {"split dim 0 block 4 ends", 24},
        {"split dim 0 block 4 ends 0,4", 25},
        {"split dim 0 block 4 ends 4 order -1", 33},
        {"split dim 0 block 4 ends 4 apart", 27},
        {"split dim 0 block 9223372036854775808 ends 4", 18}};
    for (const auto& [text, offset] : wrong) {
        const auto read = parse_execution(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().offset, offset) << text;
        EXPECT_EQ(read.error().text, text);
    }
}

// One step, found without a search, that says how it runs.
TEST(ExecutionUnit, TheSearchAnswersWithTheExchangeWhereItRunsAsOne) {
    const Mesh mesh{{"x", 2}, {"y", 3}};
    const auto at = [&](const char* text) { return *parse_layout(mesh, text); };
    const Problem problem{at("f32[12@x,10]"), at("f32[12@y,10]")};
    for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps}) {
        Options options;
        options.objective = objective;
        options.capabilities = one_node;
        const auto made = synthesize(problem, options);
        ASSERT_TRUE(made);
        EXPECT_EQ(made->execution(), Execution(AsOneExchange{}));
        EXPECT_EQ(made->plan(), *as_one_exchange(made->plan()));
        EXPECT_EQ(made->verdict(), check(made->plan(), made->execution()).value());
        options.first_steps = {{StepKind::slice, at("f32[12@(x,y),10]")}};
        EXPECT_EQ(synthesize(problem, options)->execution(), Execution(AsSteps{}));  // as the user says
        options.first_steps.clear();
        options.vocabulary = Vocabulary::collectives;
        EXPECT_EQ(synthesize(problem, options)->execution(), Execution(AsSteps{}));
    }
}

}  // namespace
}  // namespace reshard
