// Schedules of programs, and the judge.
#include "reshard/program/schedule.hpp"

#include <gtest/gtest.h>

#include "reshard/program/generate.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

constexpr Index ms = 1'000'000'000;
const Mesh left = parse_mesh("x=2[0,1]").value();
const Mesh right = parse_mesh("y=2[2,3]").value();

Layout at(const Mesh& mesh, const char* text) { return parse_layout(mesh, text).value(); }

// left makes a in rows, right uses it in columns twice; left goes on with it.
Program small() {
    Program program;
    program.tasks.push_back({"make", left, 10 * ms, {}, {{"a", at(left, "f32[1024@x,1024]")}}});
    program.tasks.push_back(
        {"far", right, 10 * ms, {{"a", at(right, "f32[1024,1024@y]")}}, {{"b", at(right, "f32[256]")}}});
    program.tasks.push_back({"near", left, 30 * ms, {{"a", at(left, "f32[1024@x,1024]")}}});
    program.tasks.push_back(
        {"again", right, 5 * ms, {{"a", at(right, "f32[1024,1024@y]")}, {"b", at(right, "f32[256]")}}});
    return program;
}

ScheduleOptions with_limit(Index bytes) {
    ScheduleOptions options;
    options.footprint_bytes_max = bytes;
    return options;
}

Error error_of(const Program& program) { return schedule(program).error(); }

TEST(Schedule, InfersOneMoveForEqualUses) {
    const ScheduleSynthesis made = schedule(small()).value();
    ASSERT_EQ(made.schedule().moves.size(), 1U);
    const ProgramMove& move = made.schedule().moves.front();
    EXPECT_EQ(move.array, "a");
    EXPECT_EQ(move.users, (std::vector<UseNumber>{{1, 0}, {3, 0}}));
    EXPECT_EQ(move.plan.plan().target, at(right, "f32[1024,1024@y]"));
    EXPECT_EQ(move.picoseconds,
              run_picoseconds(move.plan.plan(), move.plan.execution(), move.plan.verdict(), laptop()));
    EXPECT_EQ(made.verdict().picoseconds, 40 * ms);
    EXPECT_EQ(made.lower_bound, 40 * ms);
    EXPECT_EQ(made.stop, ScheduleStop::bound);
}

TEST(Schedule, AUseMayFetchAgain) {
    Program program = small();
    program.tasks.back().uses.front().again = true;
    EXPECT_EQ(schedule(program).value().schedule().moves.size(), 2U);
}

TEST(Schedule, StatedTimesOfMovesReplaceThePrice) {
    Program program = small();
    program.tasks[1].uses[0].move_picoseconds = 100 * ms;
    EXPECT_EQ(schedule(program).value().verdict().picoseconds, 125 * ms);
}

TEST(Schedule, HoldsArraysFromTheirMakerToTheirLastUser) {
    const ScheduleSynthesis made = schedule(small()).value();
    ASSERT_EQ(made.verdict().places.size(), 2U);
    const PlaceVerdict& sender = made.verdict().places[0];
    EXPECT_EQ(sender.device, 0);
    EXPECT_EQ(sender.held.front().bytes, 2 << 20);  // 512 rows of 4 KiB
    EXPECT_EQ(sender.held.back(), (HeldBytes{40 * ms, 0}));
    EXPECT_EQ(sender.peak_bytes, 2 << 20);
    const PlaceVerdict& receiver = made.verdict().places[1];
    EXPECT_EQ(receiver.device, 2);
    EXPECT_EQ(receiver.peak_bytes, (2 << 20) + 1024);
    EXPECT_EQ(receiver.held.back().bytes, 0);
}

TEST(Schedule, KeepsALimitOrSaysWhatIsNeeded) {
    EXPECT_TRUE(schedule(small(), with_limit((2 << 20) + 1024)).has_value());
    const auto refused = schedule(small(), with_limit((2 << 20) + 1023));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::infeasible);
    EXPECT_EQ(refused.error().message,
              "no order that was tried keeps the limits: device 2 needs 2.0 MiB (2098176 bytes), its limit is 2.0 MiB");
}

TEST(Schedule, DonationOpensOnlyTheDifference) {
    Program program;
    const Layout small_one = at(left, "u8[1000]");
    program.tasks.push_back({"make", left, ms, {}, {{"a", small_one}}});
    program.tasks.push_back({"look", left, ms, {{"a", small_one}}});
    program.tasks.push_back({"grow", left, ms, {{"a", small_one}}, {{"b", at(left, "u8[1500]")}}, {"a"}});
    program.tasks.push_back({"shrink", left, ms, {{"b", at(left, "u8[1500]")}}, {{"c", at(left, "u8[200]")}}, {"b"}});
    program.tasks.push_back({"use", left, ms, {{"c", at(left, "u8[200]")}}});
    EXPECT_EQ(schedule(program, with_limit(1500)).value().verdict().places[0].peak_bytes, 1500);
    program.tasks[2].donates.clear();
    EXPECT_EQ(schedule(program, with_limit(1500)).error().code, Code::infeasible);
    EXPECT_EQ(schedule(program, with_limit(2500)).value().verdict().places[0].peak_bytes, 2500);
}

TEST(Schedule, EnginesOfADeviceRunBesideEachOther) {
    Program program;
    program.tasks.push_back({"a", left, 10 * ms});
    program.tasks.push_back({"b", left, 10 * ms});
    EXPECT_EQ(schedule(program).value().verdict().picoseconds, 20 * ms);
    program.tasks[1].engine = "host";
    EXPECT_EQ(schedule(program).value().verdict().picoseconds, 10 * ms);
}

TEST(Schedule, DevicesOfANodeShareItsCard) {
    // Two moves of two pairs of devices: side by side on cards of their own, one after another on a shared one.
    const auto ends_at = [](const char* level) {
        Program program;
        for (const char* const pair : {"0", "1"}) {
            const Mesh from = parse_mesh(std::string("a=1[") + pair + "]").value();
            const Mesh to = parse_mesh(std::string("a=1[") + (*pair == '0' ? "2" : "3") + "]").value();
            program.tasks.push_back({std::string("make") + pair, from, 0, {}, {{pair, at(from, "u8[1000000]")}}});
            program.tasks.push_back(
                {std::string("use") + pair, to, 0, {{pair, at(to, "u8[1000000]"), false, 10 * ms}}});
        }
        ScheduleOptions options;
        options.moves.machine =
            parse_machine(std::string("machine test\nlevel inner devices 2 message 1us bandwidth 1GB/s\n") + level +
                          "\ncopy 1GB/s\n")
                .value();
        return schedule(program, options).value().verdict().picoseconds;
    };
    EXPECT_EQ(ends_at("level outer devices all message 1us bandwidth 1GB/s"), 10 * ms);
    EXPECT_EQ(ends_at("level outer devices all message 1us bandwidth 1GB/s shared"), 20 * ms);
}

TEST(Schedule, RefusesProgramsThatMakeNoSense) {
    Program program = small();
    program.tasks[1].uses[0].array = "z";
    EXPECT_EQ(error_of(program).message, "task far: it uses z, which nothing before it makes");
    program = small();
    program.tasks[3].name = "far";
    EXPECT_EQ(error_of(program).message, "two tasks are named far");
    program = small();
    program.tasks[1].uses[0].layout = at(right, "f32[1024,512@y]");
    EXPECT_EQ(error_of(program).code, Code::mismatch);
    program = small();
    program.tasks[1].uses[0].layout = at(left, "f32[1024@x,1024]");
    EXPECT_EQ(error_of(program).code, Code::mismatch);
    program = small();
    program.tasks[0].picoseconds = Index{1} << 58;
    EXPECT_EQ(error_of(program).code, Code::overflow);
    program = small();
    program.tasks[0].picoseconds = -1;
    EXPECT_EQ(error_of(program).code, Code::usage);
    program = small();
    program.tasks[2].after = {"later"};
    EXPECT_EQ(error_of(program).message, "task near: it comes after later, but no task before it has that name");
    program = small();
    program.tasks[1].donates = {"a"};
    EXPECT_EQ(error_of(program).message,
              "task far: it donates a, but does not use it in the layout in which it was made");
    program = small();
    program.tasks[2].donates = {"a"};
    program.tasks[3].uses[0].again = true;
    EXPECT_EQ(error_of(program).message, "task again: it uses a, whose memory was donated before");
}

// The judge must refuse every schedule that is changed to be wrong.
TEST(ScheduleJudge, RefusesWhatIsWrong) {
    const ScheduleSynthesis made = schedule(small(), with_limit(3 << 20)).value();
    const Machine machine = laptop();
    const auto why = [&](const auto& change) {
        Program program = made.program();
        ProgramSchedule schedule = made.schedule();
        change(program, schedule);
        const auto checked = check(program, schedule, machine);
        return checked ? std::string("accepted") : checked.error().message;
    };
    EXPECT_EQ(why([](auto&, auto&) {}), "accepted");
    EXPECT_EQ(why([](auto&, auto& s) { s.order.pop_back(); }),
              "the order has 4 activities; the program has 4 tasks and 1 moves");
    EXPECT_EQ(why([](auto&, auto& s) { s.order.back() = s.order.front(); }), "make is in the order twice");
    EXPECT_EQ(why([](auto&, auto& s) { s.order.back().number = 9; }), "the order names task 9, which does not exist");
    EXPECT_EQ(why([](auto&, auto& s) { s.order[1].start -= 1; }).substr(0, 30), "a to f32[1024,1024@y] on y=2[2");
    EXPECT_EQ(why([](auto&, auto& s) { s.moves[0].picoseconds -= 1; }).substr(0, 21), "a to f32[1024,1024@y]");
    EXPECT_EQ(why([](auto&, auto& s) { s.moves[0].users.pop_back(); }),
              "task again uses a in a layout to which nothing moves it");
    EXPECT_EQ(why([](auto& p, auto&) { p.tasks[3].uses[0].again = true; }), "task again wants a moved again");
    EXPECT_EQ(why([](auto& p, auto&) {
                  p.limits.push_back({left, 100});
              }),
              "device 0 holds 2097152 bytes, its limit is 100");
    EXPECT_EQ(why([](auto& p, auto&) { p.tasks[2].mesh = right; }).substr(0, 10), "task near:");
    EXPECT_EQ(why([](auto&, auto& s) {
                  for (ScheduledActivity& one : s.order)
                      if (!one.is_move && one.number == 3) one.start -= 20 * ms;
              }).substr(0, 5),
              "again");
    // Two tasks of one engine at once.
    EXPECT_EQ(why([](auto& p, auto& s) {
                  p.tasks.push_back({"beside", left, 10 * ms});
                  s.order.push_back({false, 4, 35 * ms});
              }),
              "near and beside run at once on engine compute of device 0");
}

TEST(ScheduleJudge, RefusesAnOrderThatDoesNotFitOneByOne) {
    // At the stated times nothing overlaps, but in the order `b` is made before `a` is freed.
    Program program;
    const Layout whole = at(left, "u8[100]");
    program.tasks.push_back({"make a", left, ms, {}, {{"a", whole}}});
    program.tasks.push_back({"use a", left, ms, {{"a", whole}}});
    program.tasks.push_back({"make b", left, ms, {}, {{"b", whole}}});
    program.tasks[2].engine = "host";
    program.limits.push_back({left, 100});
    const auto in_order = [&](std::vector<std::size_t> order) {
        ProgramSchedule one;
        for (const std::size_t t : order) one.order.push_back({false, t, static_cast<Index>(t) * ms});
        return check(program, one, laptop());
    };
    EXPECT_TRUE(in_order({0, 1, 2}).has_value());
    EXPECT_EQ(in_order({0, 2, 1}).error().code, Code::infeasible);
}

TEST(ScheduleJudge, PassesGeneratedProgramsAtTheirLeastMemory) {
    for (const char* const text : {"gpipe", "1f1b activations=4", "eager activations=7 width=2", "interleaved",
                                   "zero_bubble activations=4 everywhere=1", "zero3 layers=5", "tensor_data layers=3",
                                   "refit hold=2", "coupled windows=6"}) {
        const Program program = generate(text).value();
        ScheduleOptions options;
        options.rounds_max = 50;
        const auto made = schedule(program, options);
        ASSERT_TRUE(made.has_value()) << text << ": " << describe(made.error());
        EXPECT_GE(made->verdict().picoseconds, made->lower_bound) << text;
        EXPECT_LE(made->verdict().picoseconds, made->written_picoseconds) << text;
    }
}

}  // namespace
}  // namespace reshard
