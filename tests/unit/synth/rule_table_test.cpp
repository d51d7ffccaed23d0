// The table of rules: `explain` names exactly these rules. A rule that is off is neither asked nor named.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Layout on(const Mesh& mesh, const char* text) { return *parse_layout(mesh, text); }

/// Problems that together use every rule.
std::vector<Problem> questions() {
    const Mesh mesh{{"x", 2}, {"y", 3}};
    const auto at = [&](const char* text) { return on(mesh, text); };
    const Mesh elsewhere({{"z", 3}}, {6, 7, 8});
    const Mesh nodes{{"node", 2}, {"gpu", 4}};
    const Mesh crossing{{"a", 2}, {"b", 7}, {"c", 5}};
    const Mesh shuffled({{"x", 2}, {"y", 3}}, {3, 1, 4, 0, 5, 2});
    std::vector<Problem> all = {{at("f32[12@x]"), at("f32[12@x]")},
                                {at("f32[12]{U:x}"), at("f32[12]{max:y}")},
                                {at("f32[0]{U:x}"), at("f32[0]{max:y}")},
                                {at("f32[12@y[10,1,1]]{U:x}"), at("f32[12@(y,x)]")},
                                {at("f32[12@x,6]"), on(shuffled, "f32[12,6@y]")}};
    for (const char* source : {"f32[16@(node,gpu),16]", "f32[16@node,16@gpu]", "f32[16,16]"})
        for (const char* target : {"f32[16@gpu,16]", "f32[16,16@(gpu,node)]", "f32[16@node,16]"})
            all.push_back({on(nodes, source), on(nodes, target)});
    for (const Layout& target : {on(elsewhere, "f32[12,6@z]"), on(elsewhere, "f32[12,6]"), at("f32[12@x/2,6]")})
        all.push_back({at("f32[12@y,6@x]"), target});
    all.push_back({on(crossing, "f32[3584@(a,b),7680@c]"), on(crossing, "f32[3584@b,7680@(a,c)]")});
    return all;
}

std::set<std::string, std::less<>> rules_of(const Synthesis& made) {
    std::set<std::string, std::less<>> names = {made.rule};
    for (const Alternative& one : made.alternatives) names.insert(one.rule);
    for (const RuleReport& report : made.rules) names.emplace(report.rule);
    return names;
}

Options explained() {
    Options options;
    options.explain = true;
    options.machine = *make_machine("ethernet:nodes=2,per_node=4");
    options.capabilities.steps_overlap = true;
    return options;
}

// Every name that `explain` prints is in the table, and some problem uses every rule of the table.
TEST(RuleTableUnit, TheTableHasAllRulesThatExplainNames) {
    std::set<std::string, std::less<>> known;
    for (const Rule& rule : rules()) {
        EXPECT_TRUE(known.emplace(rule.name).second) << rule.name << " is there twice";
        EXPECT_FALSE(rule.about.empty()) << rule.name;
    }
    std::set<std::string, std::less<>> found;
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
        for (const Problem& problem : questions()) {
            Options options = explained();
            options.vocabulary = vocabulary;
            const auto answer = synthesize(problem, options);
            if (vocabulary == Vocabulary::collectives && !answer) continue;  // between meshes only an exchange works
            ASSERT_TRUE(answer.has_value()) << answer.error().message;
            found.merge(rules_of(*answer));
        }
    EXPECT_EQ(found, known);
}

// The questions above reach every row of the policy. An answer names its row also without explain.
TEST(RuleTableUnit, EachClassOfQuestionHasItsRow) {
    std::set<std::string, std::less<>> rows;
    for (const bool one_exchange : {false, true})
        for (const Problem& problem : questions()) {
            Options options;
            options.capabilities.one_exchange = one_exchange;
            const auto answer = synthesize(problem, options);
            ASSERT_TRUE(answer.has_value()) << answer.error().message;
            EXPECT_FALSE(answer->row.about.empty());
            rows.emplace(answer->row.name);
        }
    EXPECT_EQ(rows, (std::set<std::string, std::less<>>{"nothing_moves", "one_exchange", "one_mesh", "pieces",
                                                        "two_orders", "two_reductions"}));
}

// If no other rule is asked, synthesize then finds no plan.
TEST(RuleTableUnit, WhatIsOffNeverAppears) {
    for (const Rule& rule : rules())
        for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps}) {
            Options options = explained();
            options.objective = objective;
            options.disabled_rules = {std::string(rule.name)};
            for (const Problem& problem : questions()) {
                const auto answer = synthesize(problem, options);
                if (!answer) {
                    EXPECT_EQ(answer.error().code, Code::infeasible) << answer.error().message;
                    EXPECT_NE(answer.error().message.find(rule.name), std::string::npos) << answer.error().message;
                    continue;
                }
                EXPECT_EQ(rules_of(*answer).count(rule.name), 0U) << rule.name;
                EXPECT_TRUE(check(answer->plan(), answer->execution())) << format(answer->plan());
                EXPECT_FALSE(rule.name == "search" && answer->search_complete) << format(answer->plan());
            }
        }
}

TEST(RuleTableUnit, WithAllRulesOffThereIsNoPlan) {
    Options options;
    for (const Rule& rule : rules()) options.disabled_rules.emplace_back(rule.name);
    for (const Problem& problem : questions()) {
        const auto answer = synthesize(problem, options);
        ASSERT_FALSE(answer.has_value());
        EXPECT_EQ(answer.error().code, Code::infeasible);
        EXPECT_NE(answer.error().message.find("off are identity, search, "), std::string::npos);
    }
}

TEST(RuleTableUnit, ARuleThatThereIsNotIsRefused) {
    Options options;
    options.disabled_rules = {"search", "serach"};
    const auto answer = synthesize(questions().front(), options);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, Code::syntax);
    EXPECT_NE(answer.error().message.find("'serach' is no rule: identity, search, "), std::string::npos);
    for (const Rule& rule : rules()) EXPECT_NE(answer.error().message.find(rule.name), std::string::npos);
}

// The caller passes the clock, so a plan depends on no clock.
TEST(RuleTableUnit, RulesAreCountedAndTimed) {
    static Index ticks = 0;
    Options timed = explained();
    timed.clock = [] { return ticks += 5; };
    for (const Problem& problem : questions()) {
        const auto answer = synthesize(problem, timed);
        const auto untimed = synthesize(problem, explained());
        ASSERT_TRUE(answer.has_value());
        EXPECT_EQ(answer->plan(), untimed->plan());
        Index candidates = 0;
        Index kept = 0;
        ASSERT_EQ(answer->rules.size(), untimed->rules.size());
        for (std::size_t i = 0; i < answer->rules.size(); ++i) {
            const RuleReport& report = answer->rules[i];
            EXPECT_LE(report.kept, report.candidates);
            EXPECT_GE(report.nanoseconds, 5) << report.rule;
            EXPECT_EQ(untimed->rules[i].nanoseconds, 0);
            EXPECT_EQ(untimed->rules[i].candidates, report.candidates);
            candidates += report.candidates;
            kept += report.kept;
        }
        const auto lost = [&](const Alternative& one) {
            return one.lost.find(" over the floor ") != std::string::npos;
        };
        EXPECT_EQ(kept, std::ssize(answer->alternatives) - std::ranges::count_if(answer->alternatives, lost));
        EXPECT_GE(candidates, std::ssize(answer->alternatives));
    }
    ticks = 0;
    timed.explain = false;
    EXPECT_TRUE(synthesize(questions().front(), timed)->rules.empty());
    EXPECT_EQ(ticks, 0);
}

}  // namespace
}  // namespace reshard
