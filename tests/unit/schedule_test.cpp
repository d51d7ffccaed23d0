#include "reshard/planner/schedule.hpp"

#include <gtest/gtest.h>

#include "reshard/planner/cost.hpp"
#include "reshard/text.hpp"
#include "src/schedule/box_cut.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 2}};

Layout at(const char* text) { return *parse_layout(mesh, text); }

std::vector<Schedule> all(const Layout& before, const Step& step) {
    std::vector<Schedule> schedules;
    for (Index rank = 0; rank < device_count(before); ++rank) schedules.push_back(schedule(before, step, rank));
    return schedules;
}

TEST(ScheduleUnit, AGatherHearsItsGroup) {
    const Schedule made = schedule(at("f32[8@(x,y)]"), {StepKind::all_gather, at("f32[8@x]")}, 2);
    EXPECT_EQ(made.group, (std::vector<Index>{2, 3}));
    EXPECT_EQ(as_box(made.source_tile), (Box{{4, 6}}));
    EXPECT_EQ(as_box(made.target_tile), (Box{{4, 8}}));
    EXPECT_EQ(made.sends, (std::vector<Transfer>{{3, {{4, 6}}}}));
    EXPECT_EQ(made.receives, (std::vector<Transfer>{{2, {{4, 6}}}, {3, {{6, 8}}}}));
}

// A cut in pieces is as regular as any other if each tile is one interval, even ragged or in another order.
TEST(ScheduleUnit, PiecesOfOneIntervalHearTheirGroup) {
    const auto group_of_gather = [](const char* before, const char* after) {
        return schedule(at(before), {StepKind::all_gather, at(after)}, 2).group;
    };
    EXPECT_EQ(group_of_gather("f32[8@x[4:1,8:0]]", "f32[8]"), (std::vector<Index>{0, 2}));
    EXPECT_EQ(group_of_gather("f32[8@x[5,3],4@y]", "f32[8@x[5,3],4]"), (std::vector<Index>{2, 3}));
    EXPECT_EQ(group_of_gather("f32[8@x/2]", "f32[8]"), std::vector<Index>{});
    EXPECT_EQ(group_of_gather("f32[8@x/2,4@y]", "f32[8@x/2,4]"), std::vector<Index>{});
}

TEST(ScheduleUnit, ASliceIsALocalCopy) {
    const Schedule made = schedule(at("f32[8]"), {StepKind::slice, at("f32[8@x]")}, 3);
    EXPECT_TRUE(made.sends.empty());
    EXPECT_EQ(made.receives, (std::vector<Transfer>{{3, {{4, 8}}}}));
}

TEST(ScheduleUnit, ReductionsAddInTheOrderOfTheSummands) {
    const Schedule made = schedule(at("f32[8]{U:x}"), {StepKind::all_reduce, at("f32[8]")}, 3);
    EXPECT_EQ(made.combine, Combine::sum);
    ASSERT_EQ(made.receives.size(), 2U);
    EXPECT_EQ(made.receives[0].peer, 1);
    EXPECT_EQ(made.receives[1].peer, 3);
}

TEST(ScheduleUnit, AnAvgIsASumAndOneFactor) {
    const Layout before = at("f32[8@x]{avg:y}");
    const Step reduce{StepKind::reduce_scatter, at("f32[8@(x,y)]")};
    auto schedules = all(before, reduce);
    EXPECT_EQ(schedules[1].combine, Combine::sum);
    EXPECT_EQ(schedules[1].scale, (Scale{1, 2}));
    EXPECT_EQ(schedules[1].scaled, (std::vector<Box>{{{2, 4}}}));
    ASSERT_TRUE(check_schedules(before, reduce, schedules).has_value());
    schedules[1].scale.over = 4;
    EXPECT_FALSE(check_schedules(before, reduce, schedules).has_value());
    schedules[1].scaled.clear();
    EXPECT_FALSE(check_schedules(before, reduce, schedules).has_value());

    const Step spread{StepKind::zero_fill, at("f32[8]{avg:(x,y)}")};
    EXPECT_EQ(schedule(before, spread, 0).scale, (Scale{2, 1}));
    EXPECT_TRUE(schedule(at("f32[8@x]{U:y}"), {StepKind::reduce_scatter, reduce.layout}, 0).scaled.empty());
}

TEST(ScheduleUnit, AZeroFillFillsWithTheIdentity) {
    const Step step{StepKind::zero_fill, at("f32[8]{prod:x}")};
    auto schedules = all(at("f32[8]"), step);
    EXPECT_EQ(schedules[3].identity, Combine::prod);
    ASSERT_TRUE(check_schedules(at("f32[8]"), step, schedules).has_value());
    schedules[3].identity = Combine::sum;
    EXPECT_FALSE(check_schedules(at("f32[8]"), step, schedules).has_value());
}

TEST(ScheduleUnit, AZeroFillKeepsOneCopy) {
    const Step step{StepKind::zero_fill, at("f32[8]{U:x}")};
    const Schedule keeper = schedule(at("f32[8]"), step, 1);
    const Schedule other = schedule(at("f32[8]"), step, 3);
    EXPECT_EQ(keeper.receives, (std::vector<Transfer>{{1, {{0, 8}}}}));
    EXPECT_TRUE(other.receives.empty());
    EXPECT_EQ(other.fills, (std::vector<Box>{{{0, 8}}}));
}

TEST(ScheduleUnit, HoldersShareTheWork) {
    // Devices 0 and 1 hold the first half, 2 and 3 the second half. The devices of a pair share the other pair's
    // demand.
    const Step step{StepKind::exchange, at("f32[8]")};
    for (const Schedule& made : all(at("f32[8@x]"), step)) {
        Index sent = 0;
        for (const Transfer& send : made.sends) sent += count(send.box);
        EXPECT_EQ(sent, 4) << made.rank;
    }
}

// Devices that agree in y are a team that serves itself, unless the order of the devices puts another team nearer.
TEST(ScheduleUnit, TheNearestHolderMayStandInAnotherTeam) {
    const Network nodes = {2};
    const auto senders_to_0 = [](const Mesh& devices, const Network& network) {
        std::vector<Index> peers;
        const Step step{StepKind::exchange, *parse_layout(devices, "f32[4]")};
        for (const Transfer& part : schedule(*parse_layout(devices, "f32[4@x]"), step, 0, network).receives)
            if (part.peer != 0) peers.push_back(part.peer);
        return peers;
    };
    const Mesh listed{mesh.axes, {0, 2, 3, 1}};
    EXPECT_EQ(senders_to_0(listed, {}), (std::vector<Index>{3}));
    EXPECT_EQ(senders_to_0(listed, nodes), (std::vector<Index>{1}));
    EXPECT_EQ(senders_to_0(mesh, nodes), (std::vector<Index>{2}));  // nodes are digits: no device is nearer
    const Step step{StepKind::exchange, *parse_layout(listed, "f32[4]")};
    EXPECT_TRUE(depends_on_network(*parse_layout(listed, "f32[4@x]"), step, nodes));
    EXPECT_FALSE(depends_on_network(*parse_layout(listed, "f32[4@x]"), step, {}));
    EXPECT_FALSE(depends_on_network(at("f32[4@x]"), {StepKind::exchange, at("f32[4]")}, nodes));
}

TEST(ScheduleUnit, TheJudgeNamesRankAndBox) {
    const Layout before = at("f32[8@x]");
    const Step step{StepKind::exchange, at("f32[8]")};
    auto schedules = all(before, step);
    ASSERT_TRUE(check_schedules(before, step, schedules).has_value());
    schedules[2].receives.pop_back();
    const auto verdict = check_schedules(before, step, schedules);
    ASSERT_FALSE(verdict.has_value());
    EXPECT_EQ(verdict.error().code, Code::plan);
    EXPECT_NE(verdict.error().message.find("rank"), std::string::npos);
}

TEST(ScheduleUnit, EveryGroupOfAZeroFillHasTheSameKeeper) {
    // If each group had its own keeper, devices 0 and 2 would hold different values of the one summand.
    const Layout before = at("f32[8]");
    const Step step{StepKind::zero_fill, at("f32[8]{U:y}")};
    auto schedules = all(before, step);
    ASSERT_TRUE(check_schedules(before, step, schedules).has_value());
    schedules[2].receives.clear();
    schedules[3].receives = {{3, {{0, 8}}}};
    EXPECT_FALSE(check_schedules(before, step, schedules).has_value());
}

TEST(ScheduleUnit, RanksBeyondTheDevicesDoNothing) {
    const Schedule made = schedule(at("f32[8@x]"), {StepKind::exchange, at("f32[8]")}, 4);
    EXPECT_TRUE(made.sends.empty());
    EXPECT_TRUE(made.receives.empty());
    EXPECT_EQ(count(made.target_tile), 0);
}

Index place(const Box& box, const std::vector<Index>& index) {
    Index number = 0;
    for (std::size_t k = 0; k < box.size(); ++k) number = number * box[k].size() + index[k] - box[k].begin;
    return number;
}

// Slabs follow one another, no slab is too large, and their number is as small as the rows of the cut dimension allow.
TEST(Slabs, MakeUpTheBoxInRowMajorOrder) {
    const Box box = {{1, 4}, {2, 7}, {0, 6}};
    for (const auto& [most, parts] : {std::pair<Index, std::size_t>{0, 90},
                                      {1, 90},
                                      {4, 30},
                                      {6, 15},
                                      {7, 15},
                                      {12, 9},
                                      {29, 6},
                                      {30, 3},
                                      {31, 3},
                                      {60, 2},
                                      {1000, 1}}) {
        const std::vector<Box> all = slabs(box, most);
        EXPECT_EQ(all.size(), parts) << most;
        Index next = 0;
        for (const Box& slab : all) {
            EXPECT_EQ(place(box, {slab[0].begin, slab[1].begin, slab[2].begin}), next);
            EXPECT_LE(count(slab), std::max<Index>(most, 1));
            next += count(slab);
            EXPECT_EQ(place(box, {slab[0].end - 1, slab[1].end - 1, slab[2].end - 1}), next - 1);
        }
        EXPECT_EQ(next, count(box));
    }
}

TEST(Slabs, OfOneElementThereIsOneAndOfNoneNone) {
    EXPECT_EQ(slabs({}, 1), std::vector<Box>{Box{}});
    EXPECT_TRUE(slabs({{0, 3}, {2, 2}}, 4).empty());
    EXPECT_EQ(slabs({{5, 6}}, 0), (std::vector<Box>{{{5, 6}}}));
}

}  // namespace
}  // namespace reshard
