#include "reshard/synthesize.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "reshard/notations/notation.hpp"
#include "reshard/planner/schedule.hpp"
#include "reshard/planner/simulate.hpp"
#include "reshard/text.hpp"
#include "support/time.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const char* text) { return *parse_layout(mesh, text); }

Options with(Vocabulary vocabulary, Objective objective) {
    Options options;
    options.vocabulary = vocabulary;
    options.objective = objective;
    return options;
}

TEST(SynthesizeUnit, WordsAreReadAsTheyArePrinted) {
    for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps})
        EXPECT_EQ(*parse_objective(name(objective)), objective);
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
        EXPECT_EQ(*parse_vocabulary(name(vocabulary)), vocabulary);
    EXPECT_FALSE(parse_objective("money").has_value());
    EXPECT_FALSE(parse_vocabulary("").has_value());
    for (const StopReason reason :
         {StopReason::one_step, StopReason::exhausted, StopReason::budget, StopReason::unsearched})
        EXPECT_FALSE(name(reason).empty());
}

TEST(SynthesizeUnit, WhereNothingMovesThePlanIsEmpty) {
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        const auto made = synthesize(at("f32[12@x]"), at("f32[12@x]"), with(vocabulary, Objective::time));
        ASSERT_TRUE(made.has_value());
        EXPECT_TRUE(made->plan().steps.empty());
        EXPECT_TRUE(made->optimal);
    }
}

TEST(SynthesizeUnit, TheReadmePairMeetsItsBoundBothWays) {
    const Layout source = at("f32[12288@x,4096]");
    const Layout target = at("f32[12288@y,4096]");
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        const auto made = synthesize(source, target, with(vocabulary, Objective::bytes));
        ASSERT_TRUE(made.has_value());
        EXPECT_TRUE(made->optimal) << format(made->plan());
        EXPECT_EQ(made->verdict().peak_bytes, made->verdict().floor_bytes);
    }
}

TEST(SynthesizeUnit, TheFewestStepsAreOneExchange) {
    const auto made = synthesize(at("f32[12@x,6]"), at("f32[12,6@y]"), with(Vocabulary::all, Objective::steps));
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->plan().steps.size(), 1U);
}

TEST(SynthesizeUnit, DifferentArraysAreRefused) {
    EXPECT_EQ(synthesize(at("f32[12]"), at("f32[13]")).error().code, Code::mismatch);
    EXPECT_EQ(synthesize(at("f32[12]"), at("f64[12]")).error().code, Code::mismatch);
    EXPECT_EQ(synthesize(at("f32[12]"), at("f32[12,2]")).error().code, Code::mismatch);
    EXPECT_TRUE(synthesize(at("f32[12]"), at("f32[12,1]")));  // a reshape is the same array
    Layout broken = at("f32[12@x]");
    broken.dims[0].atoms.push_back({1, 1});
    EXPECT_EQ(synthesize(broken, at("f32[12]")).error().code, Code::layout);
}

TEST(SynthesizeUnit, AnInfeasibleLimitNamesTheFloor) {
    Options options;
    options.limits.peak_bytes_max = 47;
    const auto made = synthesize(at("f32[12@x]"), at("f32[12]"), options);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, Code::infeasible);
    EXPECT_NE(made.error().message.find("48 B"), std::string::npos) << made.error().message;
}

// The search's plan needs a workspace, and no dimension of it can be cut. The exchange needs no workspace.
TEST(SynthesizeUnit, AFootprintLimitThatOneCandidateExceedsChoosesAnother) {
    const Mesh larger{{"x", 2}, {"y", 2}};
    const Problem problem{*parse_layout(larger, "f32[16@(x,y),16]"), *parse_layout(larger, "f32[16@y,16@x]")};
    Options options = with(Vocabulary::all, Objective::steps);
    options.explain = true;
    const auto free = synthesize(problem, options);
    ASSERT_TRUE(free.has_value());
    Index most = 0;
    for (const Alternative& one : free->alternatives) most = std::max(most, one.verdict().footprint_bytes);
    const Index least = tile_bytes(problem.source) + tile_bytes(problem.target);
    ASSERT_GT(most, least);
    options.explain = false;
    for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps}) {
        options.objective = objective;
        options.limits.memory.footprint_bytes_max = least;
        const auto made = synthesize(problem, options);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        EXPECT_EQ(made->verdict().footprint_bytes, least);
        options.limits.memory.footprint_bytes_max = least - 1;
        const auto refused = synthesize(problem, options);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, Code::infeasible);
        EXPECT_NE(refused.error().message.find(format_bytes(least)), std::string::npos) << refused.error().message;
    }
}

TEST(SynthesizeUnit, AFootprintLimitIsKeptInPieces) {
    const Problem problem{at("f32[12@x,64]"), at("f32[12@y,64]")};
    Options options = with(Vocabulary::collectives, Objective::bytes);
    const auto whole = synthesize(problem, options);
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->execution(), Execution(AsSteps{}));
    const Index ends = tile_bytes(problem.source) + tile_bytes(problem.target);
    const Index workspace = whole->verdict().footprint_bytes - ends;
    ASSERT_GT(workspace, 0);
    options.limits.memory.footprint_bytes_max = ends + workspace / 4;
    const auto cut = synthesize(problem, options);
    ASSERT_TRUE(cut.has_value()) << cut.error().message;
    EXPECT_EQ(piece_count(cut->execution()), 4);
    EXPECT_LE(cut->verdict().footprint_bytes, ends + workspace / 4);
    EXPECT_GT(cut->picoseconds, whole->picoseconds);
    options.limits.memory.footprint_bytes_max = ends;
    EXPECT_FALSE(synthesize(problem, options).has_value());
}

TEST(SynthesizeUnit, FirstStepsAreTakenAndTheRestIsFound) {
    const Problem problem{at("f32[12@x,6]"), at("f32[12,6@(x,y)]")};
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        Options options = with(vocabulary, Objective::bytes);
        options.first_steps = {{StepKind::all_gather, at("f32[12,6]")}};
        const auto made = synthesize(problem, options);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        ASSERT_EQ(made->plan().steps.size(), 2U);
        EXPECT_EQ(made->plan().steps[0], options.first_steps[0]);
        EXPECT_EQ(made->plan().steps[1].kind, StepKind::slice);
        EXPECT_EQ(made->verdict(), *check(made->plan()));
        EXPECT_EQ(made->plan().source, problem.source);
        EXPECT_FALSE(made->search_complete);
        options.limits.peak_bytes_max = made->verdict().floor_bytes;
        EXPECT_EQ(synthesize(problem, options).error().code, Code::infeasible);
    }
    Options options;
    options.first_steps = {{StepKind::all_gather, at("f32[12,6@y]")}};
    const auto refused = synthesize(problem, options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::step);
    EXPECT_NE(refused.error().message.find("first step 1"), std::string::npos) << refused.error().message;
}

TEST(SynthesizeUnit, TheWinnerIsFirstAndTheLosersSayWhy) {
    Options options;
    options.explain = true;
    const auto made = synthesize(at("f32[12@x,6]"), at("f32[12,6@y]"), options);
    ASSERT_TRUE(made.has_value());
    ASSERT_FALSE(made->alternatives.empty());
    EXPECT_EQ(made->alternatives[0].rule, made->rule);
    EXPECT_EQ(made->alternatives[0].plan(), made->plan());
    EXPECT_TRUE(made->alternatives[0].lost.empty());
    for (std::size_t i = 1; i < made->alternatives.size(); ++i) EXPECT_FALSE(made->alternatives[i].lost.empty());
}

TEST(SynthesizeUnit, GatherThenSlicePassesThroughTheWholeArray) {
    const auto plan = gather_then_slice({at("f32[12@x,6]"), at("f32[12,6@y]")});
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(check(*plan)->peak_bytes, 12 * 6 * 4);
}

// One end alone does not show that its list of devices permutes digits; the other end does.
TEST(SynthesizeUnit, EndsOnOneListOfDevicesStayInOneOrder) {
    const Mesh listed({{"x", 4}}, {0, 2, 1, 3});
    const Mesh square{{"a", 2}, {"b", 2}};
    const Mesh listed_square({{"a", 2}, {"b", 2}}, {0, 2, 1, 3});
    const std::vector<Problem> problems{
        {*parse_layout(listed, "f32[4]"), *parse_layout(listed, "f32[4@x:(1)2]")},
        {*parse_layout(listed, "f32[8@x,2]"), *parse_layout(square, "f32[8@b,2]")},
        {*parse_layout(listed, "f32[8@x]"), *parse_layout(listed_square, "f32[8@a]")},
        {*parse_layout(listed, "f32[8@x:(2)2]"), *parse_layout(listed, "f32[8@x:(2)2]{U:x:(1)2}")},
    };
    for (const Problem& problem : problems)
        for (const Problem& one : {problem, Problem{problem.target, problem.source}})
            for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
                const auto made = synthesize(one, with(vocabulary, Objective::bytes));
                ASSERT_TRUE(made.has_value()) << made.error().message;
                EXPECT_EQ(made->verdict(), check(made->plan()).value());
            }
}

// Extents of 1 and ragged tiles on the way: the plan receives the least, and it is the same with all alternatives.
TEST(SynthesizeUnit, ExplainChangesNoPlan) {
    struct Case {
        Mesh mesh;
        const char* source;
        const char* target;
        Index received;
    };
    const std::vector<Case> cases{
        {{{"a", 3}, {"b", 3}}, "f32[1,9,6@a,9@b]", "f32[1,9@b,6,9]", 576},
        {{{"a", 2}, {"b", 2}}, "f32[2@b,1,8,1]", "f32[2,1,8@(a,b),1]", 8},
    };
    for (const Case& one : cases) {
        Options options = with(Vocabulary::collectives, Objective::bytes);
        const auto made = synthesize(*parse_layout(one.mesh, one.source), *parse_layout(one.mesh, one.target), options);
        options.explain = true;
        const auto explained =
            synthesize(*parse_layout(one.mesh, one.source), *parse_layout(one.mesh, one.target), options);
        ASSERT_TRUE(made.has_value() && explained.has_value());
        EXPECT_EQ(made->verdict().received_bytes_max_device, one.received);
        EXPECT_TRUE(made->search_complete);
        EXPECT_EQ(made->plan(), explained->plan());
        EXPECT_EQ(made->search_complete, explained->search_complete);
    }
}

// A slice, a reduce_scatter, an all_gather and a zero_fill: five summands of each element become one on six devices.
TEST(SynthesizeUnit, SummandsKeptAtBothEndsMeetTheirBound) {
    const Mesh devices{{"d0", 5}, {"d1", 3}, {"d2", 6}};
    const Layout source = *parse_layout(devices, "f32[92160,1440@d2]{U:d0}");
    const Layout target = *parse_layout(devices, "f32[92160@d1,1440]{U:d0}");
    const auto made = synthesize(source, target, with(Vocabulary::collectives, Objective::bytes));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made->verdict().received_bytes_max_device, 53'084'160);
    EXPECT_TRUE(made->optimal);
    EXPECT_TRUE(made->search_complete);
}

// The axis that neither end uses is sliced first, also where the mesh has more prime digits than are searched.
TEST(SynthesizeUnit, IdleAxesMakeReductionsCheapOnLargerMeshes) {
    const Mesh devices{{"a", 8}, {"b", 8}};
    const Layout source = *parse_layout(devices, "f32[2048,32768]{U:b}");
    const Layout target = *parse_layout(devices, "f32[2048@b,32768]");
    for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all}) {
        const auto made = synthesize(source, target, with(vocabulary, Objective::bytes));
        ASSERT_TRUE(made.has_value()) << made.error().message;
        EXPECT_EQ(made->verdict().received_bytes_max_device, 58'720'256);
        EXPECT_TRUE(made->optimal);
    }
}

// One pass over the axes suffices. A look at all axes for each pair of them would take minutes.
TEST(SynthesizeUnit, ThousandsOfAxesOfSizeOneTakeNoTime) {
    std::string text = "x=2";
    std::string list;
    for (int i = 0; i < 8000; ++i) {
        text += ",a" + std::to_string(i) + "=1";
        list += ",a" + std::to_string(i);
    }
    const double begin = test::cpu_seconds();
    const auto many = parse_mesh(text);
    ASSERT_TRUE(many.has_value());
    const auto source = parse_layout(*many, "f32[8@(x" + list + "),1]");
    ASSERT_TRUE(source.has_value());
    const auto made = synthesize(*source, *parse_layout(*many, "f32[8,1@x]"));
    ASSERT_TRUE(made.has_value());
    EXPECT_LT(test::cpu_seconds() - begin, 10);
    EXPECT_EQ(parse_mesh(text + ",a7=1").error().message, "the mesh has two axes named a7");
}

TEST(SynthesizeUnit, ThousandsOfDimensionsTakeNoTime) {
    const Mesh square{{"x", 2}, {"y", 2}};
    Layout source{DType::f32, square, std::vector<Dim>(8000, Dim(1)), {}};
    Layout target = source;
    source.dims[17].atoms = {{2, 2}};
    target.dims[18].atoms = {{4, 1}};
    const double begin = test::cpu_seconds();
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
        for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps}) {
            Options options = with(vocabulary, objective);
            options.explain = true;
            ASSERT_TRUE(synthesize(source, target, options).has_value());
        }
    EXPECT_LT(test::cpu_seconds() - begin, 10);
}

TEST(SynthesizeUnit, AListIsAnsweredInItsOrder) {
    const std::vector<Problem> problems{{at("f32[12@x]"), at("f32[12]")}, {at("f32[12]"), at("f32[12@y]")}};
    const auto made = synthesize(std::span<const Problem>(problems));
    ASSERT_TRUE(made.has_value());
    ASSERT_EQ(made->arrays.size(), 2U);
    ASSERT_EQ(made->list().plans.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(made->arrays[i].plan().target, problems[i].target);
        EXPECT_EQ(made->list().plans[i], made->arrays[i].plan());
    }
    EXPECT_EQ(made->list().buckets, (std::vector<std::vector<std::size_t>>{{0, 1}}));
}

TEST(SynthesizeUnit, OneReductionAfterAnotherGoesThroughTheArrayItself) {
    const Layout source = *parse_layout(mesh, "f32[12@x]{max:y}");
    const Layout target = *parse_layout(mesh, "f32[12@y]{prod:x}");
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        const auto made = synthesize(source, target, {.vocabulary = vocabulary});
        ASSERT_TRUE(made.has_value()) << made.error().message;
        EXPECT_EQ(made->verdict(), check(made->plan()).value());
        std::vector<std::int64_t> array(12);
        for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::int64_t>(i) - 5;
        const auto tiles = simulate(made->plan(), distribute(source, array).value());
        ASSERT_TRUE(tiles.has_value());
        EXPECT_TRUE(denotes(target, *tiles, array));
    }
    Options tight;
    tight.limits.peak_bytes_max = 4;
    EXPECT_EQ(synthesize(source, target, tight).error().code, Code::infeasible);
}

// All pairs of placements that sum over some axes and average over others. On any way, the factors of the steps turn
// the source's divisor into the target's divisor.
TEST(SynthesizeUnit, SumsAndAveragesTogetherAreScaledByTheirDivisors) {
    const NotationContext setting{Mesh{{"a", 2}, {"b", 4}, {"c", 3}}, DType::f32, {48}};
    const std::vector<std::string> placements = {
        "P(sum),P(avg),R",      "R,R,R",           "S(0),P(avg),R", "P(sum),R,R",          "P(avg),P(sum),S(0)",
        "P(sum),P(avg),P(sum)", "P(avg),P(avg),R", "P(max),R,R",    "P(avg),P(sum),P(avg)"};
    for (const std::string& from : placements)
        for (const std::string& to : placements)
            for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
                SCOPED_TRACE(from + " -> " + to);
                const Layout source = parse_layout(Notation::dtensor, setting, from).value();
                const Layout target = parse_layout(Notation::dtensor, setting, to).value();
                const auto made = synthesize(source, target, {.vocabulary = vocabulary});
                ASSERT_TRUE(made.has_value()) << made.error().message;
                EXPECT_TRUE(check(made->plan()).has_value());
                Index times = 1;
                Index over = 1;
                for (std::size_t i = 0; i < made->plan().steps.size(); ++i) {
                    const Layout& before = layout_before(made->plan(), i);
                    std::vector<Schedule> all;
                    for (Index rank = 0; rank < 24; ++rank)
                        all.push_back(schedule(before, made->plan().steps[i], rank));
                    EXPECT_TRUE(check_schedules(before, made->plan().steps[i], all).has_value());
                    times *= all[0].scale.times;
                    over *= all[0].scale.over;
                }
                EXPECT_EQ(times * divisor(source), over * divisor(target)) << format(made->plan());
            }
}

// Tiles that are cut axis by axis, as in torch, nest for any extents. One axis between nodes and one axis inside them
// end sooner than an exchange between all devices.
TEST(SynthesizeUnit, UnevenTilesMoveLevelByLevelInCutsByTurns) {
    const NotationContext setting{Mesh{{"x", 8}, {"y", 8}}, DType::f32, {302, 104, 1227}};
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        Options options = with(vocabulary, Objective::time);
        options.machine = *make_machine("dgx-h100:nodes=8");
        const auto made = synthesize(*parse_layout(Notation::dtensor, setting, "S(1),S(0)"),
                                     *parse_layout(Notation::dtensor, setting, "S(2),S(2)"), options);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        ASSERT_EQ(made->plan().steps.size(), 2) << format(made->plan());
        EXPECT_EQ(made->plan().steps[0].kind, StepKind::all_to_all);
        EXPECT_EQ(made->plan().steps[1].kind, StepKind::all_to_all);
    }
}

// If an axis of six is cut in two ways, the search sees more moves than it counts. The estimate for the last moves is
// not a bound for cuts by turns.
TEST(SynthesizeUnit, AnEstimateBoundsNoOtherSearch) {
    const Mesh six{{"x", 6}, {"y", 4}};
    Options options = with(Vocabulary::collectives, Objective::time);
    options.machine = *make_machine("dgx-h100:nodes=4");
    const auto made = synthesize(*parse_layout(six, "f32[36@y,10@x]"), *parse_layout(six, "f32[36@x,10]"), options);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_TRUE(std::ranges::any_of(made->plan().steps, [](const Step& step) { return has_pieces(step.layout); }))
        << format(made->plan());
}

// No collective exists between two meshes of different sizes, and the remaining candidates may not exchange.
TEST(SynthesizeUnit, CollectivesNeverExchange) {
    const Layout source = parse_layout(Mesh{}, "f32[4]").value();
    const Layout target = parse_layout(Mesh{{"x", 2}}, "f32[4@x]").value();
    for (const bool explain : {false, true}) {
        Options options = with(Vocabulary::collectives, Objective::time);
        options.explain = explain;
        EXPECT_EQ(synthesize(source, target, options).error().code, Code::infeasible);
        options.vocabulary = Vocabulary::all;
        EXPECT_TRUE(synthesize(source, target, options).has_value());
    }
}

TEST(SynthesizeUnit, MoreDevicesThanCanBeCountedOneByOneAreRefused) {
    const auto ragged = [](Index devices) {
        const Mesh line{{"x", devices}};
        return synthesize(parse_layout(line, "f32[3@x]").value(), parse_layout(line, "f32[3]").value());
    };
    EXPECT_TRUE(ragged(Index{1} << 22).has_value());
    EXPECT_EQ(ragged(Index{1} << 23).error().code, Code::unsupported);
}

TEST(SynthesizeUnit, TwoReductionsOfNothingAreOptimal) {
    const auto made = synthesize(at("f32[0]{U:x}"), at("f32[0]{max:y}"));
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->verdict().received_bytes_max_device, made->verdict().lower_bound_bytes);
    EXPECT_TRUE(made->optimal);
}

}  // namespace
}  // namespace reshard
