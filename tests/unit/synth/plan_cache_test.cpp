#include "reshard/planner/plan_cache.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "reshard/text.hpp"

namespace reshard {
namespace {

Problem problem_on(const Mesh& mesh, const std::string& source, const std::string& target) {
    return {*parse_layout(mesh, source), *parse_layout(mesh, target)};
}

const Mesh mesh{{"x", 2}, {"y", 3}};
const Mesh renamed{{"rows", 2}, {"columns", 3}};

void expect_same(const Synthesis& one, const Synthesis& other) {
    EXPECT_EQ(one.plan(), other.plan()) << format(one.plan()) << format(other.plan());
    EXPECT_EQ(one.verdict(), other.verdict());
    EXPECT_EQ(one.picoseconds, other.picoseconds);
    EXPECT_EQ(one.rule, other.rule);
    EXPECT_EQ(one.search_complete, other.search_complete);
}

TEST(PlanCacheUnit, AHitIsTheSamePlanInTheNamesOfTheQuestion) {
    PlanCache cache;
    Options options;
    options.vocabulary = Vocabulary::collectives;
    const Problem first = problem_on(mesh, "f32[12@x,6]", "f32[12@y,6]");
    const Problem again = problem_on(renamed, "i32[12@rows,6]", "i32[12@columns,6]");
    expect_same(*cache.synthesize(first, options), *synthesize(first, options));
    EXPECT_EQ(cache.hits(), 0);
    expect_same(*cache.synthesize(first, options), *synthesize(first, options));
    expect_same(*cache.synthesize(again, options), *synthesize(again, options));
    EXPECT_EQ(cache.hits(), 2);
    EXPECT_EQ(cache.size(), 1U);
}

TEST(PlanCacheUnit, ReshapesAndMeshesWrittenDifferentlyAreRemembered) {
    PlanCache cache;
    const Problem reshape = problem_on(mesh, "f32[24@(x,y)]", "f32[4,6@(y,x)]");
    const Problem written{*parse_layout(mesh, "f32[12@(x,y),6]"), *parse_layout(Mesh{{"all", 6}}, "f32[12,6@all]")};
    for (const Problem& problem : {reshape, written}) {
        const auto made = cache.synthesize(problem);
        ASSERT_TRUE(made) << made.error().message;
        expect_same(*cache.synthesize(problem), *made);
        expect_same(*synthesize(problem), *made);
        EXPECT_EQ(Problem({made->plan().source, made->plan().target}), *to_common_shape(problem));
    }
    EXPECT_EQ(cache.hits(), 2);
}

TEST(PlanCacheUnit, PlansInAViewAreRemembered) {
    PlanCache cache;
    Options options;
    options.vocabulary = Vocabulary::collectives;
    const Problem first = problem_on({{"x", 2}, {"y", 4}}, "f32[1024,1024@x]", "f32[1024@(x,y),1024]");
    const Problem again = problem_on({{"a", 2}, {"b", 4}}, "i32[1024,1024@a]", "i32[1024@(a,b),1024]");
    expect_same(*cache.synthesize(first, options), *synthesize(first, options));
    expect_same(*cache.synthesize(again, options), *synthesize(again, options));
    EXPECT_EQ(cache.hits(), 1);
}

TEST(PlanCacheUnit, WhatDecidesThePlanIsAskedAnew) {
    PlanCache cache;
    const Problem first = problem_on(mesh, "f32[12@x,6]", "f32[12@y,6]");
    Options options;
    options.vocabulary = Vocabulary::collectives;
    std::vector<std::pair<Problem, Options>> questions = {{first, options}};
    questions.emplace_back(problem_on(mesh, "f32[24@x,6]", "f32[24@y,6]"), options);
    questions.emplace_back(problem_on(mesh, "f64[12@x,6]", "f64[12@y,6]"), options);
    questions.emplace_back(problem_on(mesh, "f32[12@x,6]", "f32[12@y,6@x]"), options);
    questions.emplace_back(problem_on({{"x", 2}, {"y", 3}, {"z", 2}}, "f32[12@x,6]", "f32[12@y,6]"), options);
    questions.emplace_back(first, Options{});
    options.objective = Objective::bytes;
    questions.emplace_back(first, options);
    options.machine = *make_machine("ethernet:nodes=2,per_node=3");
    questions.emplace_back(first, options);
    options.limits.memory.footprint_bytes_max = 1 << 20;
    questions.emplace_back(first, options);
    options.first_steps = {{StepKind::all_gather, *parse_layout(mesh, "f32[12,6]")}};
    questions.emplace_back(first, options);
    options.disabled_rules = {"search"};
    questions.emplace_back(first, options);
    for (const auto& [problem, asked] : questions)
        expect_same(*cache.synthesize(problem, asked), *synthesize(problem, asked));
    EXPECT_EQ(cache.hits(), 0);
    EXPECT_EQ(cache.size(), questions.size());
    for (const auto& [problem, asked] : questions)
        expect_same(*cache.synthesize(problem, asked), *synthesize(problem, asked));
    EXPECT_EQ(cache.hits(), static_cast<Index>(questions.size()));
}

// The order of the names does not matter either.
TEST(PlanCacheUnit, ARuleThatThereIsNotIsRefusedBesideWhatIsRemembered) {
    PlanCache cache;
    const Problem problem = problem_on(mesh, "f32[12@x,6]", "f32[12@y,6]");
    Options options;
    for (const auto& names : {std::vector<std::string>{"search", "three_stage"}, {"three_stage", "search"}}) {
        options.disabled_rules = names;
        EXPECT_TRUE(cache.synthesize(problem, options));
    }
    EXPECT_EQ(cache.hits(), 1);
    options.disabled_rules.emplace_back("serach");
    const auto refused = cache.synthesize(problem, options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::syntax);
}

TEST(PlanCacheUnit, TheOldestQuestionIsForgottenFirst) {
    PlanCache cache(2);
    const auto ask = [&](Index extent) {
        const std::string n = std::to_string(extent);
        return cache.synthesize(problem_on(mesh, "f32[" + n + "@x]", "f32[" + n + "]")).has_value();
    };
    for (const Index extent : {2, 4, 2, 6}) EXPECT_TRUE(ask(extent));  // forgets 4
    EXPECT_EQ(cache.size(), 2U);
    EXPECT_EQ(cache.hits(), 1);
    EXPECT_TRUE(ask(2));
    EXPECT_EQ(cache.hits(), 2);
    EXPECT_TRUE(ask(4));
    EXPECT_EQ(cache.hits(), 2);
    PlanCache none(0);
    EXPECT_TRUE(none.synthesize(problem_on(mesh, "f32[2@x]", "f32[2]")).has_value());
    EXPECT_EQ(none.size(), 0U);
}

TEST(PlanCacheUnit, ErrorsAndExplanationsAreNotRemembered) {
    PlanCache cache;
    EXPECT_FALSE(cache.synthesize({*parse_layout(mesh, "f32[12]"), *parse_layout(mesh, "f32[13]")}).has_value());
    Options options;
    options.explain = true;
    EXPECT_FALSE(cache.synthesize(problem_on(mesh, "f32[2@x]", "f32[2]"), options)->alternatives.empty());
    EXPECT_EQ(cache.size(), 0U);
}

TEST(PlanCacheUnit, ThreadsMayAskTogether) {
    PlanCache cache(8);
    std::vector<std::thread> threads;
    std::array<int, 4> wrong{};
    for (std::size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            for (Index i = 0; i < 400; ++i) {
                // Each problem comes twice in a row. With more problems than places, taking turns would never hit.
                const std::string n = std::to_string(6 * (1 + (i / 2 * 7 + static_cast<Index>(t)) % 12));
                const Problem problem = problem_on(mesh, "f32[" + n + "@x]", "f32[" + n + "@y]");
                const auto made = cache.synthesize(problem);
                wrong[t] += !made || made->plan().source != problem.source || !check(made->plan());
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, (std::array<int, 4>{}));
    EXPECT_LE(cache.size(), 8U);
    EXPECT_GT(cache.hits(), 0);
}

}  // namespace
}  // namespace reshard
