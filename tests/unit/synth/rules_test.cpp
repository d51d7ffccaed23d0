// One test for each rule that `explain` names, by its name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "synth/rules/cross_mesh.hpp"
#include "synth/rules/fetch_once.hpp"
#include "synth/rules/fuse_steps.hpp"
#include "synth/rules/renumber.hpp"
#include "synth/rules/three_stage.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const char* text) { return *parse_layout(mesh, text); }

/// A layout on three devices that are not in the mesh above.
Layout elsewhere(const char* text) { return *parse_layout(Mesh({{"z", 3}}, {6, 7, 8}), text); }

Synthesis made(const Problem& problem, Vocabulary vocabulary, Objective objective) {
    Options options;
    options.vocabulary = vocabulary;
    options.objective = objective;
    return synthesize(problem, options).value();
}

TEST(RuleUnit, identity) {
    EXPECT_EQ(made({at("f32[12@x]"), at("f32[12@x]")}, Vocabulary::all, Objective::bytes).rule, "identity");
}

TEST(RuleUnit, one_step) {
    const auto gather = made({at("f32[12@x,6]"), at("f32[12,6]")}, Vocabulary::all, Objective::bytes);
    EXPECT_EQ(gather.rule, "one_step");
    EXPECT_EQ(gather.plan().steps[0].kind, StepKind::all_gather);
    const auto turn = made({at("f32[12@x,6]"), at("f32[12,6@x]")}, Vocabulary::collectives, Objective::time);
    EXPECT_EQ(turn.rule, "one_step");
    EXPECT_EQ(turn.plan().steps[0].kind, StepKind::all_to_all);
}

TEST(RuleUnit, direct_exchange) {
    const auto direct = made({at("f32[12@x,6]"), at("f32[12@y,6]")}, Vocabulary::all, Objective::bytes);
    EXPECT_EQ(direct.rule, "direct_exchange");
    EXPECT_TRUE(direct.optimal);
}

TEST(RuleUnit, search) {
    const auto found = made({at("f32[12@x,6]"), at("f32[12@y,6]")}, Vocabulary::collectives, Objective::bytes);
    EXPECT_EQ(found.rule, "search");
    EXPECT_TRUE(found.search_complete);
    EXPECT_EQ(found.stop_reason, StopReason::exhausted);
}

// Slices only, equal tiles to equal tiles, gathers only; peak at the floor.
TEST(RuleUnit, three_stage) {
    const Problem problem{at("f32[12@x,6]"), at("f32[12@y,6]")};
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
        for (const Index inside : {Index{0}, Index{3}, index_max}) {
            const Plan plan = three_stage(problem, vocabulary, inside);
            const auto verdict = check(plan);
            ASSERT_TRUE(verdict.has_value()) << format(plan);
            EXPECT_EQ(verdict->peak_bytes, verdict->floor_bytes);
            EXPECT_LE(verdict->received_bytes, 2 * verdict->lower_bound_bytes);
        }
}

// If there are too many primes to search them all, tiles are numbered once, as the target needs them. Each pair needs
// this for another reason. Shardy's pass receives equally little on all pairs except the fourth, where it receives
// more.
TEST(RuleUnit, OnePermute) {
    struct Pair {
        Mesh mesh;
        const char* source;
        const char* target;
        Index received;  // KiB
    };
    const Pair pairs[] = {
        {{{"a", 4}, {"b", 8}, {"c", 3}}, "f32[64,384@a,1152@b]", "f32[64,384@b,1152@(a,c)]", 1728},
        {{{"a", 2}, {"b", 2}, {"c", 6}, {"d", 4}}, "f32[1536@(c,d),384@b,64@a]", "f32[1536@d,384@c,64@b]", 4096},
        {{{"a", 6}, {"b", 3}, {"c", 5}}, "f32[160,32,240@c,24@b]", "f32[160@c,32,240@b,24@a]", 2304},
        {{{"a", 5}, {"b", 4}, {"c", 3}, {"d", 2}}, "f32[240@(a,c),480@b,64,8]", "f32[240@c,480@a,64@(b,d),8]", 4896},
        {{{"a", 6}, {"b", 6}, {"c", 3}}, "f32[288@a,1728,64]", "f32[288@c,1728@(a,b),64]", 1728},
    };
    for (const auto& [axes, source, target, received] : pairs) {
        const Problem problem{*parse_layout(axes, source), *parse_layout(axes, target)};
        const Synthesis found = made(problem, Vocabulary::collectives, Objective::bytes);
        EXPECT_EQ(found.verdict().received_bytes_max_device, received * 1024) << format(found.plan());
        EXPECT_LE(found.verdict().peak_bytes, found.verdict().floor_bytes);
        EXPECT_EQ(std::ranges::count(found.plan().steps, StepKind::permute, &Step::kind), 1);
        EXPECT_FALSE(found.search_complete && !found.optimal);
    }
}

// Fewer messages in two steps win if messages cost all. One step wins if each step has a start, and if bytes count.
TEST(RuleUnit, one_step_by_its_start) {
    const auto steps = [](Index side, Index start_ps) {
        const Mesh eight{{"a", 4}, {"b", 2}};
        Options options;
        options.machine = {"meetings", {{"node", index_max, 1'000'000, 50'000'000'000, start_ps}}, 2'000'000'000};
        const auto layout = [&](const char* text) {
            return *parse_layout(eight, fmt::format(fmt::runtime(text), side));
        };
        return synthesize(layout("f64[{0}@(a,b),{0}]"), layout("f64[{0},{0}@(b,a)]"), options)->plan().steps.size();
    };
    EXPECT_EQ(steps(64, 0), 2U);
    EXPECT_EQ(steps(128, 0), 1U);
    EXPECT_EQ(steps(64, 4'000'000), 1U);
    EXPECT_EQ(steps(8, 4'000'000), 1U);
}

// Each element enters a node of 3 devices once, at one of the devices that want it.
TEST(RuleUnit, fetch_once) {
    const Problem problem{at("f32[12@(x,y),6]"), at("f32[12,6@x]")};
    const Machine machine{"nodes of 3", {{"inside", 3, 0, 8}, {"outside", index_max, 0, 1}}, 8};
    const auto plan = fetch_once(problem, Vocabulary::all, machine, 0);
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->steps.size(), 2U);
    EXPECT_EQ(plan->steps[0].layout, at("f32[12@y,6@x]"));
    EXPECT_EQ(plan->steps[1].kind, StepKind::all_gather);
    EXPECT_TRUE(check(*plan).has_value());
    EXPECT_FALSE(fetch_once({at("f32[12@x]"), at("f32[12@(x,y)]")}, Vocabulary::all, machine, 0).has_value());
}

// From one node of 2 devices to two nodes: scattered over all four devices, forwarded between the nodes, then shared
// inside.
TEST(RuleUnit, fetch_once_between) {
    const Machine machine{"nodes of 2", {{"inside", 2, 0, 8}, {"outside", index_max, 0, 1, 0, true}}, 8};
    const Mesh one{{"a", 2}};
    const Mesh two({{"c", 2}, {"d", 2}}, {2, 3, 4, 5});
    const Problem problem{*parse_layout(one, "f32[12@a]"), *parse_layout(two, "f32[12]")};
    const auto plan = fetch_once_between(problem, machine, 1);
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->steps.size(), 3U);
    EXPECT_EQ(plan->steps[0].layout, *parse_layout(two, "f32[12@(d,c)]"));
    EXPECT_EQ(plan->steps[1].layout, *parse_layout(two, "f32[12@d]"));
    const auto verdict = check(*plan);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(step_times(plan->steps[0].layout, plan->steps[1], verdict->moves[1], machine).levels[0], 0);
    Options options;
    options.machine = machine;
    EXPECT_EQ(synthesize(problem, options)->rule, "fetch_once");
    const auto inside = fetch_once_between(problem, machine, 0);
    ASSERT_TRUE(inside.has_value());
    EXPECT_EQ(inside->steps[0].layout, *parse_layout(two, "f32[12@d]"));
}

// Summands are added up inside a node before they leave it.
TEST(RuleUnit, reduce_first_inside) {
    const Machine machine{"nodes of 2", {{"inside", 2, 0, 8}, {"outside", index_max, 0, 1}}, 8};
    const Mesh one{{"n", 2}, {"g", 2}};
    const Mesh two({{"c", 4}}, {4, 5, 6, 7});
    const auto plan = reduce_first({*parse_layout(one, "f32[8]{U:(n,g)}"), *parse_layout(two, "f32[8@c]")}, machine);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->steps[0].layout, *parse_layout(one, "f32[8@g]{U:n}"));
}

TEST(RuleUnit, shortcut) {
    Plan plan{at("f32[12@(x,y),6]"), at("f32[12,6]"), {}};
    plan.steps = {{StepKind::all_gather, at("f32[12@x,6]")},
                  {StepKind::all_to_all, at("f32[12,6@x]")},
                  {StepKind::all_gather, at("f32[12,6]")}};
    Options options;
    options.objective = Objective::bytes;
    const Plan shorter = shortcut(plan, options);
    ASSERT_EQ(shorter.steps.size(), 1U);
    EXPECT_EQ(shorter.steps[0].kind, StepKind::all_gather);
    EXPECT_LT(check(shorter)->received_bytes, check(plan)->received_bytes);
}

TEST(RuleUnit, gather_then_slice) {
    const auto plan = gather_then_slice({at("f32[12@x,6]"), at("f32[12,6@y]")});
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->steps.size(), 2U);
    EXPECT_EQ(plan->steps[0].kind, StepKind::all_gather);
    EXPECT_EQ(plan->steps[1].kind, StepKind::slice);
}

// Sums are added up in place, before anything crosses to the other devices.
TEST(RuleUnit, reduce_first) {
    const auto answer = made({at("f32[12]{U:x}"), elsewhere("f32[12@z]")}, Vocabulary::all, Objective::bytes);
    EXPECT_EQ(answer.rule, "reduce_first");
    ASSERT_EQ(answer.plan().steps.size(), 2U);
    EXPECT_EQ(answer.plan().steps[0].layout, at("f32[12@x]"));
    EXPECT_EQ(answer.plan().steps[1].kind, StepKind::exchange);
}

// One shard has nearly all elements. Its summands go to the devices that want each part, and are added up there.
TEST(RuleUnit, reduce_last) {
    const auto answer = made({at("f32[12@y[10,1,1]]{U:x}"), at("f32[12@(y,x)]")}, Vocabulary::all, Objective::bytes);
    EXPECT_EQ(answer.rule, "reduce_last");
    ASSERT_EQ(answer.plan().steps.size(), 2U);
    EXPECT_EQ(answer.plan().steps[0].layout, at("f32[12@y]{U:x}"));
    EXPECT_EQ(answer.plan().steps[1].kind, StepKind::reduce_scatter);
}

// One device holds everything, and three devices want all of it. Each gets a third, then they share.
TEST(RuleUnit, scatter_then_gather) {
    const Layout one = *parse_layout(Mesh{}, "f32[3145728]");
    const auto answer = made({one, elsewhere("f32[3145728]")}, Vocabulary::all, Objective::time);
    EXPECT_EQ(answer.rule, "scatter_then_gather");
    ASSERT_EQ(answer.plan().steps.size(), 2U);
    EXPECT_EQ(answer.plan().steps[0].layout, elsewhere("f32[3145728@z]"));
    EXPECT_EQ(answer.plan().steps[1].kind, StepKind::all_gather);
}

// The same devices in an order that is not a permutation of digits. Tiles are made in the source's order, then whole
// tiles move.
TEST(RuleUnit, reorder) {
    const Mesh shuffled({{"x", 2}, {"y", 3}}, {3, 1, 4, 0, 5, 2});
    const Problem problem{at("f32[12@x,6]"), *parse_layout(shuffled, "f32[12,6@y]")};
    const auto answer = made(problem, Vocabulary::collectives, Objective::bytes);
    EXPECT_EQ(answer.rule, "reorder");
    EXPECT_EQ(answer.plan().steps.back().kind, StepKind::permute);
    EXPECT_TRUE(check(answer.plan()).has_value());
}

// Nested chunks, as in DTensor, of an extent that does not divide.
TEST(RuleUnit, SearchByTurns) {
    const Layout target = at("f32[13@(x,y)[3,3,1,2,2,2],12]");
    for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all}) {
        const auto answer = made({at("f32[13,12]{U:x}"), target}, vocabulary, Objective::bytes);
        EXPECT_EQ(answer.rule, "search");
        EXPECT_EQ(answer.verdict().received_bytes_max_device, 208);  // the idle axis, then x adds up a third
        EXPECT_TRUE(answer.search_complete);
        EXPECT_TRUE(check(answer.plan()).has_value());
    }
}

// The idle axis is sliced by a cut that neither end has, so only a third of the array is reduced.
TEST(RuleUnit, even_blocks) {
    const auto answer =
        made({at("f32[13,12]{U:x}"), at("f32[13@(x,y)[3,2,2,2,2,2],12]")}, Vocabulary::all, Objective::bytes);
    EXPECT_EQ(answer.rule, "even_blocks");
    EXPECT_EQ(answer.verdict().received_bytes_max_device, 224);
    EXPECT_TRUE(check(answer.plan()).has_value());
}

TEST(RuleUnit, gather_differing) {
    const auto plan = gather_differing({at("f32[12@x/2,6]"), at("f32[12@x,6@y]")});
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->steps.size(), 2U);
    EXPECT_EQ(plan->steps[0].layout, at("f32[12,6]"));
    EXPECT_EQ(plan->steps[1].kind, StepKind::slice);
    EXPECT_TRUE(check(*plan).has_value());
}

// An axis enters a dimension above the axis that cuts it already, or leaves from above it.
TEST(RuleUnit, split_dims) {
    struct Move {
        const char* mesh;
        const char* source;
        const char* target;
        Index received;
        Index received_without;
    };
    const Move moves[] = {{"x=2,y=4", "f32[1024,1024@x]", "f32[1024@(x,y),1024]", 256 << 10, 448 << 10},
                          {"d0=2,d1=4", "f32[512,128@d0]{U:d1}", "f32[512@d0,128]", 208 << 10, 220 << 10},
                          {"cp=8", "bf16[1,4096@cp,2,64]", "bf16[1,4096,2@cp:(1)2,64]", 448 << 10, 496 << 10}};
    for (const Move& move : moves) {
        const Mesh axes = *parse_mesh(move.mesh);
        const Problem problem{*parse_layout(axes, move.source), *parse_layout(axes, move.target)};
        const auto found = made(problem, Vocabulary::collectives, Objective::bytes);
        EXPECT_EQ(found.rule, "split_dims") << move.source;
        EXPECT_EQ(found.verdict().received_bytes_max_device, move.received) << format(found.plan());
        EXPECT_TRUE(found.search_complete) << move.source;
        Options options{.objective = Objective::bytes, .vocabulary = Vocabulary::collectives};
        options.disabled_rules = {"split_dims"};
        EXPECT_EQ(synthesize(problem, options)->verdict().received_bytes_max_device, move.received_without);
    }
}

/// Two axes, 2 x 5, make ten shards that are best cut as 5 x 2.
Problem crossing() {
    const Mesh axes{{"a", 2}, {"b", 7}, {"c", 5}};
    return {*parse_layout(axes, "f32[3584@(a,b),7680@c]"), *parse_layout(axes, "f32[3584@b,7680@(a,c)]")};
}

// XLA's partitioner does the same. Either way one permute and one all-to-all of half a tile; at one end the permute is
// free.
TEST(RuleUnit, renumber) {
    const Problem there = crossing();
    for (const Problem& problem : {there, Problem{there.target, there.source}}) {
        const auto found = made(problem, Vocabulary::collectives, Objective::bytes);
        EXPECT_EQ(found.rule, "renumber");
        EXPECT_EQ(found.verdict().received_bytes_max_device, tile_bytes(problem.source) * 3 / 2)
            << format(found.plan());
        EXPECT_EQ(found.verdict().peak_bytes, found.verdict().floor_bytes);
        EXPECT_TRUE(parse_plan(format(found.plan())).has_value());
        Options options;
        options.vocabulary = Vocabulary::collectives;
        options.objective = Objective::bytes;
        options.disabled_rules = {"renumber"};
        EXPECT_GT(synthesize(problem, options)->verdict().received_bytes_max_device,
                  found.verdict().received_bytes_max_device);
    }
    EXPECT_FALSE(renumbered_to_target({at("f32[12@x,6]"), at("f32[12@y,6]")}));  // no digits are gained
    EXPECT_FALSE(renumbered_to_source({at("f32[12@x,6]{U:y}"), at("f32[12@(y,x),6]")}));
}

// With an exchange, steps end sooner one after the other. With no exchange they end sooner in pieces, which use both
// levels at once.
TEST(RuleUnit, collectives) {
    const Mesh nodes{{"a", 2}, {"b", 2}, {"c", 2}};
    const Problem problem{*parse_layout(nodes, "f32[512@b,512@c]"), *parse_layout(nodes, "f32[512@a,512]")};
    Options options{.capabilities = {.steps_overlap = true}};
    options.machine = {"nodes of 4", {{"inside", 4, 0, 2'000'000}, {"outside", index_max, 0, 1'000'000}}, index_max};
    const auto found = synthesize(problem, options);
    EXPECT_EQ(found->rule, "collectives");
    options.disabled_rules = {"collectives"};
    EXPECT_GT(synthesize(problem, options)->picoseconds, found->picoseconds);

    // Under a memory limit, plans with an exchange hold too much.
    const Mesh six{{"a", 3}, {"b", 2}};
    const Problem sums{*parse_layout(six, "f32[12,1]{U:a}"), *parse_layout(six, "f32[12,1@b]")};
    Options within{.limits = {.memory = {.footprint_bytes_max = 96}}};
    const auto fits = synthesize(sums, within);
    ASSERT_TRUE(fits) << fits.error().message;
    EXPECT_EQ(fits->rule, "collectives");
    EXPECT_LE(fits->verdict().footprint_bytes, 96);
    within.disabled_rules = {"collectives"};
    EXPECT_EQ(synthesize(sums, within).error().code, Code::infeasible);
}

}  // namespace
}  // namespace reshard
