// Moves whose pieces are used as they arrive: when they pay, what they change, and what the judge refuses.
#include <gtest/gtest.h>

#include "reshard/program/schedule.hpp"
#include "reshard/program/script.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

constexpr Index ms = 1'000'000'000;
const Mesh left = parse_mesh("x=2[0,1]").value();
const Mesh right = parse_mesh("y=2[2,3]").value();
const Layout rows = parse_layout(left, "f32[4096@x,1024]").value();
const Layout columns = parse_layout(right, "f32[4096,1024@y]").value();

// left makes a; right uses it along rows. The move takes 4 ms or a little more.
Program refit() {
    Program program;
    program.tasks.push_back({"make", left, 5 * ms, {}, {{"a", rows}}});
    program.tasks.push_back({"load", right, 4 * ms, {{"a", columns}}});
    program.tasks.back().uses.front().pieces_along = 0;
    return program;
}

Program whole(Program program) {
    for (Task& task : program.tasks)
        for (ProgramUse& use : task.uses) use.pieces_along.reset();
    return program;
}

TEST(MovesInPieces, AMoveThatStandsAloneIsHiddenBehindItsUser) {
    const ScheduleSynthesis made = schedule(refit()).value();
    const ScheduleSynthesis before = schedule(whole(refit())).value();
    ASSERT_EQ(made.schedule().moves.size(), 1U);
    const ProgramMove& move = made.schedule().moves.front();
    ASSERT_NE(pieces_of(move), nullptr);
    EXPECT_EQ(pieces_of(move)->dim, 0U);
    EXPECT_EQ(pieces_of(move)->block, 2048) << "each piece comes from both senders";
    EXPECT_GT(pieces_of(move)->ends.size(), 2U);
    EXPECT_GE(move.picoseconds, before.schedule().moves.front().picoseconds);
    EXPECT_LT(made.verdict().picoseconds, before.verdict().picoseconds - 3 * ms);
    EXPECT_EQ(made.written_picoseconds, before.verdict().picoseconds);
    EXPECT_LE(made.lower_bound, made.verdict().picoseconds);
    EXPECT_GE(made.verdict().picoseconds, 5 * ms + move.picoseconds) << "the task ends after its move";
}

TEST(MovesInPieces, AMoveBesideOtherWorkStaysWhole) {
    Program program = refit();
    program.tasks.insert(program.tasks.begin(), {"busy", right, 40 * ms});
    const ScheduleSynthesis made = schedule(program).value();
    EXPECT_FALSE(made.schedule().moves.front().in_pieces);
    EXPECT_EQ(made.verdict().picoseconds, 44 * ms);
    EXPECT_EQ(made.stop, ScheduleStop::bound);
}

TEST(MovesInPieces, AMoveOfTwoUsersStaysWhole) {
    Program program = refit();
    program.tasks.push_back({"more", right, 4 * ms, {{"a", columns}}});
    EXPECT_FALSE(schedule(program).value().schedule().moves.front().in_pieces);
}

TEST(MovesInPieces, AStatedTimeStretchesThePieces) {
    Program program = refit();
    const ScheduleSynthesis priced = schedule(program).value();
    const Index whole_time = schedule(whole(program)).value().schedule().moves.front().picoseconds;
    program.tasks[0].picoseconds *= 10;
    program.tasks[1].picoseconds *= 10;
    program.tasks[1].uses[0].move_picoseconds = 10 * whole_time;
    const ScheduleSynthesis stated = schedule(program).value();
    ASSERT_TRUE(stated.schedule().moves.front().in_pieces);
    EXPECT_NEAR(static_cast<double>(stated.verdict().picoseconds),
                10 * static_cast<double>(priced.verdict().picoseconds), static_cast<double>(ms) / 100);
}

TEST(MovesInPieces, TheWorkspaceOfPiecesCounts) {
    const ScheduleSynthesis made = schedule(refit()).value();
    ScheduleOptions options;
    for (const PlaceVerdict& place : made.verdict().places)
        options.footprint_bytes_max = std::max(options.footprint_bytes_max.value_or(0), place.peak_bytes);
    EXPECT_TRUE(schedule(refit(), options).value().schedule().moves.front().in_pieces);
}

TEST(MovesInPieces, TheJudgeRefusesPiecesThatComeTooLate) {
    const ScheduleSynthesis made = schedule(refit()).value();
    const auto refused = [&](ProgramSchedule schedule, const Program& program) {
        const auto verdict = check(program, schedule, laptop());
        return verdict ? std::string("accepted") : verdict.error().message;
    };
    ASSERT_TRUE(check(made.program(), made.schedule(), laptop()));
    ProgramSchedule early = made.schedule();
    --early.order.back().start;
    EXPECT_NE(refused(early, made.program()).find("before it has arrived"), std::string::npos);
    EXPECT_NE(refused(made.schedule(), whole(made.program())).find("does not ask for"), std::string::npos);
    ProgramSchedule unsaid = made.schedule();
    unsaid.moves.front().in_pieces = false;
    EXPECT_NE(refused(unsaid, made.program()).find("has ended"), std::string::npos);
    ProgramSchedule other = schedule(whole(refit())).value().schedule();
    other.moves.front().in_pieces = true;
    EXPECT_NE(refused(other, made.program()).find("its plan does not run so"), std::string::npos);
    ProgramSchedule turned = made.schedule();
    std::swap(turned.order[1], turned.order[2]);
    EXPECT_NE(refused(turned, made.program()).find("in the order"), std::string::npos);
    ProgramSchedule faster = made.schedule();
    --faster.moves.front().picoseconds;
    EXPECT_NE(refused(faster, made.program()).find("takes"), std::string::npos);
    Program wrong = refit();
    wrong.tasks[1].uses[0].pieces_along = 2;
    EXPECT_EQ(schedule(wrong).error().code, Code::usage);
}

TEST(MovesInPieces, AScriptNamesTheMoveBesideTheTask) {
    const ScheduleSynthesis made = schedule(refit()).value();
    const DeviceScript script = script_of(made, laptop(), 3).value();
    EXPECT_EQ(script.steps, (std::vector<ScriptStep>{{1, {0}}, {2, {}, 1}}));
}

}  // namespace
}  // namespace reshard
