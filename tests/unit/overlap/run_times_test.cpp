// The price of runs in pieces, and the choice of pieces so that a plan's own steps overlap.
#include "src/price/run_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "src/price/carried.hpp"
#include "synth/overlap/overlap_steps.hpp"

namespace reshard {
namespace {

/// Nodes of two devices. A byte takes 1 us inside a node and 1 us outside; everything else is free.
Machine nodes_of_two() {
    return {"nodes", {{"inside", 2, 0, 1'000'000}, {"outside", index_max, 0, 1'000'000}}, index_max};
}

// A device receives a third of its bytes from its own node.
Plan gathered_both_ways() {
    return *parse_plan(
        "mesh x=2,y=2\nsource u8[64,64@x,64@y]\nall_gather u8[64,64@x,64]\nall_gather u8[64,64,64]\n"
        "target u8[64,64,64]\n");
}

Options options_of(const Machine& machine, bool steps_overlap) {
    Options options;
    options.machine = machine;
    options.capabilities.steps_overlap = steps_overlap;
    return options;
}

TEST(RunTimesUnit, StepsCostWhatTheyDid) {
    const Judged<Plan> plan = judge(gathered_both_ways(), AsSteps{}).value();
    const Index steps = plan_picoseconds(plan.plan(), plan.verdict(), nodes_of_two());
    EXPECT_EQ(run_picoseconds(plan.plan(), AsSteps{}, plan.verdict(), nodes_of_two()), steps);
    EXPECT_EQ(run_picoseconds(plan.plan(), even_split(0, 64, 64), plan.verdict(), nodes_of_two()), steps);
    Machine late = nodes_of_two();
    late.levels[0].latency_ps = late.levels[1].latency_ps = 1000;
    const Index started = plan_picoseconds(plan.plan(), plan.verdict(), late);
    EXPECT_EQ(started, steps + 2 * 1000);
    const auto in_four = [&] {  // near, since an empty transfer rounds up to a picosecond
        return static_cast<double>(run_picoseconds(plan.plan(), even_split(0, 64, 16), plan.verdict(), late));
    };
    EXPECT_NEAR(in_four(), static_cast<double>(started + 3 * 2 * 1000), 50);
    // Each piece waits for the messages of the levels that it crosses, and has a cost of its own.
    late.levels[1].latency_ps = 5000;
    late.piece_ps = 70'000;
    EXPECT_NEAR(in_four(), static_cast<double>(started + 4000 + 3 * (1000 + 5000) + 4 * 70'000), 50);
    // If steps do not overlap, run_times gives the same price. It prices the work beside such pieces.
    const Split four = even_pieces(0, 64, 4);
    EXPECT_EQ(picoseconds_of(run_times(plan.plan(), four, plan.verdict(), late, false), four),
              run_picoseconds(plan.plan(), even_split(0, 64, 16), plan.verdict(), late));
}

// A third of the bytes travel inside the nodes and two thirds between them. The first piece takes both times, each
// further piece only the time between nodes.
TEST(RunTimesUnit, FurtherPiecesTakeAsLongAsTheBusiestLevel) {
    const Judged<Plan> plan = judge(gathered_both_ways(), AsSteps{}).value();
    const Times times = plan_times(plan.plan(), plan.verdict(), nodes_of_two());
    const Index byte = 1'000'000;
    const Index copies = times.copies;
    ASSERT_EQ(times.levels, (std::vector<Index>{64 * 64 * 16 * byte, 64 * 64 * 32 * byte}));
    for (const Index pieces : {2, 4, 8, 64}) {
        const Index time = run_picoseconds(plan.plan(), even_pieces(0, 64, pieces), plan.verdict(), nodes_of_two());
        const Index whole = times.levels[0] + times.levels[1] + copies;
        EXPECT_NEAR(static_cast<double>(time),
                    static_cast<double>(whole / pieces + times.levels[1] / pieces * (pieces - 1)), 1e3);
    }
    // With two equally slow levels at most half of the time is saved, since two pieces travel at once.
    Machine alike = nodes_of_two();
    alike.levels[1].bytes_per_second *= 2;
    const Index even = plan_picoseconds(plan.plan(), plan.verdict(), alike);
    const Index time = run_picoseconds(plan.plan(), even_pieces(0, 64, 64), plan.verdict(), alike);
    EXPECT_GT(time, even / 2);
    EXPECT_LT(time, even * 53 / 100);
}

TEST(RunTimesUnit, EachPiecePaysItsLatenciesAndItsOwnCost) {
    Machine machine = nodes_of_two();
    machine.levels[0].latency_ps = 3'000;
    machine.levels[1].latency_ps = 5'000;
    machine.piece_ps = 7'000;
    const Judged<Plan> plan = judge(gathered_both_ways(), AsSteps{}).value();
    const auto at = [&](const Machine& one) {
        return run_picoseconds(plan.plan(), even_pieces(0, 64, 4), plan.verdict(), one);
    };
    EXPECT_EQ(at(machine), at(nodes_of_two()) + 8'000 + 7'000 + 3 * (5'000 + 7'000));
}

// Pieces of a single step come one after the other, whatever the levels: a step does not overlap itself.
TEST(RunTimesUnit, OneStepDoesNotOverlapItself) {
    const Plan plan = *parse_plan("mesh x=2,y=2\nsource u8[64@(x,y)]\nall_gather u8[64]\ntarget u8[64]\n");
    const Verdict verdict = *check(plan);
    EXPECT_NEAR(static_cast<double>(run_picoseconds(plan, even_pieces(0, 16, 4), verdict, nodes_of_two())),
                static_cast<double>(plan_picoseconds(plan, verdict, nodes_of_two())), 100);
    EXPECT_FALSE(in_overlapped_pieces(judge(plan, AsSteps{}).value(), options_of(nodes_of_two(), true)));
}

// One device sends everything in the first step and rests in the second step, while the others forward what they got.
TEST(RunTimesUnit, WhoIsBusyInOneStepMayRestInTheNext) {
    const Plan plan = *parse_plan(
        "mesh a=1[0]\nsource u8[4096]\nmesh b=4[2,4,6,8]\nexchange u8[4096@b]\nall_gather u8[4096]\n"
        "target u8[4096]\n");
    const Verdict verdict = *check(plan);
    EXPECT_EQ(plan_times(plan, verdict, nodes_of_two()).levels[1], (4096 + 3072) * Index{1'000'000});
    EXPECT_EQ(carried_in_all(plan, verdict.moves, nodes_of_two()), (std::vector<Index>{0, 4096}));
    const RunTimes times = run_times(plan, even_pieces(0, 1024, 16), verdict, nodes_of_two(), true);
    EXPECT_EQ(longest(times.behind, 16).whole, 4096 * Index{1'000'000});
    EXPECT_EQ(run_times(plan, even_pieces(0, 1024, 16), verdict, nodes_of_two(), false).behind,
              std::vector<PieceTime>{times.alone});
}

// Even two pieces of a plan over one level win nothing where the same cores copy.
TEST(RunTimesUnit, OneLevelOverlapsNothing) {
    EXPECT_FALSE(in_overlapped_pieces(judge(gathered_both_ways(), AsSteps{}).value(), options_of(laptop(), true)));
}

TEST(RunTimesUnit, AreChosenWhereTheBackendOverlapsSteps) {
    const Judged<Plan> plan = judge(gathered_both_ways(), AsSteps{}).value();
    EXPECT_FALSE(in_overlapped_pieces(plan, options_of(nodes_of_two(), false)));
    const auto pieces = in_overlapped_pieces(plan, options_of(nodes_of_two(), true));
    ASSERT_TRUE(pieces);
    EXPECT_EQ(pieces->plan(), plan.plan());
    EXPECT_TRUE(overlaps(pieces->execution()));
    EXPECT_LT(run_picoseconds(pieces->plan(), pieces->execution(), pieces->verdict(), nodes_of_two()),
              plan_picoseconds(plan.plan(), plan.verdict(), nodes_of_two()) * 7 / 10);
    // Dear pieces are few. If they cost more than they save, the run is not cut.
    Machine dear = nodes_of_two();
    dear.piece_ps = dear.levels[0].bytes_per_second * 4096;
    const auto few = in_overlapped_pieces(plan, options_of(dear, true));
    ASSERT_TRUE(few);
    EXPECT_LT(piece_count(few->execution()), piece_count(pieces->execution()));
    dear.piece_ps *= 16;
    EXPECT_FALSE(in_overlapped_pieces(plan, options_of(dear, true)));
}

TEST(RunTimesUnit, StayWithinTheLimits) {
    const Judged<Plan> plan = judge(gathered_both_ways(), AsSteps{}).value();
    Options options = options_of(nodes_of_two(), true);
    const Index without = in_overlapped_pieces(plan, options)->verdict().footprint_bytes;
    EXPECT_LT(without, plan.verdict().footprint_bytes);  // two pieces of the tile between steps exist at a time
    options.limits.memory.footprint_bytes_max = without - 1;
    const auto less = in_overlapped_pieces(plan, options);
    ASSERT_TRUE(less);
    EXPECT_LT(less->verdict().footprint_bytes, without);
    options.limits.memory.footprint_bytes_max = tile_bytes(plan.plan().source) + tile_bytes(plan.plan().target);
    EXPECT_FALSE(in_overlapped_pieces(plan, options));
}

TEST(RunTimesUnit, TheSynthesizerPricesWhatItChooses) {
    const Mesh mesh{{"x", 2}, {"y", 4}};
    const Layout source = *parse_layout(mesh, "f32[4096@(x,y),4096]");
    const Layout target = *parse_layout(mesh, "f32[4096,4096@x]");
    Machine machine = nodes_of_two();
    machine.levels[0].devices = 4;
    machine.levels[0].bytes_per_second = 4'000'000;
    const Synthesis steps = synthesize(source, target, options_of(machine, false)).value();
    Options options = options_of(machine, true);
    options.explain = true;
    const Synthesis pieces = synthesize(source, target, options).value();
    EXPECT_EQ(steps.execution(), Execution(AsSteps{}));
    EXPECT_EQ(steps.picoseconds, plan_picoseconds(steps.plan(), steps.verdict(), machine));
    ASSERT_TRUE(overlaps(pieces.execution()));
    EXPECT_EQ(pieces.picoseconds, run_picoseconds(pieces.plan(), pieces.execution(), pieces.verdict(), machine));
    EXPECT_LT(pieces.picoseconds, steps.picoseconds);
    EXPECT_FALSE(pieces.search_complete);
    EXPECT_EQ(pieces.alternatives.front().execution(), pieces.execution());
    options.explain = false;
    EXPECT_EQ(synthesize(source, target, options)->plan(), pieces.plan());
    // In a list of several arrays no plan is cut this way.
    const Problem problem{source, target};
    const std::vector<Problem> two = {problem, problem};
    const auto list = synthesize(two, options);
    ASSERT_TRUE(list) << list.error().message;
    for (const Synthesis& one : list->arrays) EXPECT_FALSE(overlaps(one.execution()));
    EXPECT_EQ(list->cut_alone, 2);
    EXPECT_EQ(synthesize(std::span(two).first(1), options)->cut_alone, 0);
    EXPECT_EQ(synthesize(two, options_of(machine, false))->cut_alone, 0);
}

/// Plays pieces one after the other, two at a time. Each goes through stages, and each stage holds its level. A level
/// serves the piece that came first.
Index played(const std::vector<std::pair<std::size_t, Index>>& stages, std::size_t levels, int pieces) {
    std::vector<Index> free(levels, 0);
    std::vector<Index> ends;
    struct Way {
        std::size_t stage = 0;
        Index at = 0;
    };
    std::vector<Way> ways;
    int begun = 0;
    int done = 0;
    while (done < pieces) {
        while (begun < pieces && begun < done + 2) {
            ways.push_back({0, begun < 2 ? 0 : ends[static_cast<std::size_t>(begun - 2)]});
            ++begun;
        }
        // The piece whose stage can begin first.
        auto next = std::ranges::min_element(ways, {}, [&](const Way& way) {
            return way.stage == stages.size() ? index_max : std::max(way.at, free[stages[way.stage].first]);
        });
        const auto [level, time] = stages[next->stage];
        next->at = free[level] = std::max(next->at, free[level]) + time;
        if (++next->stage < stages.size()) continue;
        ends.push_back(next->at);
        ++done;
    }
    return ends.back();
}

// The price of many pieces is close to the time of a played run, with two pieces at a time.
TEST(RunTimesUnit, PiecesTakeWhatTwoAtATimeTake) {
    std::mt19937 random(3);
    const int pieces = 16;
    for (int i = 0; i < 2000; ++i) {
        const std::size_t levels = 2 + random() % 2;
        std::vector<std::pair<std::size_t, Index>> stages(2 + random() % 3);
        std::vector<Index> busy(levels, 0);
        Index alone = 0;
        for (auto& [level, time] : stages) {
            level = random() % levels;
            time = 1 + static_cast<Index>(random() % 100);
            busy[level] += time;
            alone += time;
        }
        const Index most = std::max(*std::ranges::max_element(busy), (alone + 1) / 2);
        const Index price = alone + (pieces - 1) * most;
        const Index took = played(stages, levels, pieces);
        ASSERT_LE(took, alone * pieces);
        ASSERT_GE(static_cast<double>(took), 0.9 * static_cast<double>(price)) << i;
        ASSERT_LE(static_cast<double>(took), 1.5 * static_cast<double>(price)) << i;
    }
}

}  // namespace
}  // namespace reshard
