// The pieces that the price of a plan chooses.
#include "reshard/overlap/choose_pieces.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "reshard/notations/notation.hpp"
#include "reshard/overlap/measure_work.hpp"

namespace reshard {
namespace {

Judged<Plan> gather() {
    const Mesh mesh{{"x", 4}};
    const Layout source = parse_layout(mesh, "f32[4096@x,1024]").value();
    const Layout target = parse_layout(mesh, "f32[4096,1024]").value();
    return judge({source, target, {{StepKind::all_gather, target}}}, AsSteps{}).value();
}

PieceWork work_of(double seconds) {
    PieceWork work;
    work.dim = 0;
    work.block = 1024;
    work.seconds = [seconds](Index begin, Index end) { return seconds * static_cast<double>(end - begin) / 1024; };
    return work;
}

TEST(ChoosePieces, OverlapsWhatTakesAsLongAsTheTransfer) {
    const Judged<Plan> plan = gather();
    const Machine machine = make_machine("ethernet:nodes=4,per_node=1").value();
    const double transfer = static_cast<double>(plan_picoseconds(plan.plan(), plan.verdict(), machine)) / 1e12;
    for (const bool makes_source : {false, true}) {
        PieceWork work = work_of(transfer);
        work.makes_source = makes_source;
        const PieceChoice choice = choose_pieces(plan, machine, work).value();
        ASSERT_TRUE(choice.split);
        EXPECT_GT(choice.split->ends.size(), 3U);
        EXPECT_EQ(choice.split->ends.back(), 1024);
        EXPECT_TRUE(can_split(plan.plan(), *choice.split));
        EXPECT_NEAR(static_cast<double>(choice.serial_picoseconds), 2e12 * transfer, 1e12 * transfer / 1000);
        EXPECT_LT(choice.picoseconds, choice.serial_picoseconds * 2 / 3);
        EXPECT_GE(choice.picoseconds, choice.serial_picoseconds / 2);
    }
}

TEST(ChoosePieces, OnePieceWhereMoreDoNotPay) {
    const Judged<Plan> plan = gather();
    Machine machine = make_machine("ethernet:nodes=4,per_node=1").value();
    machine.piece_ps = 1'000'000'000'000;
    const PieceChoice dear = choose_pieces(plan, machine, work_of(0.001)).value();
    EXPECT_FALSE(dear.split);
    EXPECT_EQ(dear.picoseconds, dear.serial_picoseconds);
    const PieceChoice idle = choose_pieces(plan, laptop(), work_of(0)).value();
    EXPECT_FALSE(idle.split) << "there is nothing to hide";
}

// A quarter of the work is on the rank's own data, and fills the time until the first piece has arrived.
TEST(ChoosePieces, WorkThatWaitsForNoPieceComesFirst) {
    const Judged<Plan> plan = gather();
    const Machine machine = make_machine("ethernet:nodes=4,per_node=1").value();
    const double transfer = static_cast<double>(plan_picoseconds(plan.plan(), plan.verdict(), machine)) / 1e12;
    const PieceChoice all = choose_pieces(plan, machine, work_of(transfer)).value();
    PieceWork work = work_of(transfer * 3 / 4);
    work.seconds_before = transfer / 4;
    const PieceChoice apart = choose_pieces(plan, machine, work).value();
    EXPECT_NEAR(static_cast<double>(apart.serial_picoseconds), static_cast<double>(all.serial_picoseconds), 1e6);
    ASSERT_TRUE(apart.split);
    EXPECT_LT(apart.picoseconds, all.picoseconds);
    EXPECT_LE(apart.split->ends.size(), all.split->ends.size());

    // Even if the run is not cut, work that needs no piece hides behind the transfer.
    Machine dear = machine;
    dear.piece_ps = 1'000'000'000'000;
    const PieceChoice whole = choose_pieces(plan, dear, work).value();
    EXPECT_FALSE(whole.split);
    EXPECT_NEAR(static_cast<double>(whole.serial_picoseconds - whole.picoseconds), 1e12 * transfer / 4, 1e6);
}

TEST(ChoosePieces, ShortPiecesOfWorkTakeLongerForAnIndex) {
    const auto slow = [](Index begin, Index end) {
        ASSERT_TRUE(0 <= begin && begin < end && end <= 100) << begin << " to " << end;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    const WorkTimes measured = measure_work(100, slow, 8, 3);
    EXPECT_EQ(measured.lengths, (std::vector<Index>{12, 24, 48, 96, 100}));
    for (const double seconds : measured.seconds) EXPECT_GE(seconds, 0.001);

    const WorkTimes line{{10, 20, 80}, {1, 1.5, 3}};
    EXPECT_EQ(line(0, 3), 1) << "no shorter one was measured";
    EXPECT_EQ(line(5, 15), 1);
    EXPECT_EQ(line(0, 15), 1.25);
    EXPECT_EQ(line(20, 100), 3);
    EXPECT_EQ(line(0, 160), 6);
}

TEST(ChoosePieces, ErrorsSayWhatIsWrong) {
    const Judged<Plan> plan = gather();
    PieceWork work = work_of(1);
    work.makes_source = true;
    work.seconds_before = 1;
    EXPECT_EQ(choose_pieces(plan, laptop(), work).error().code, Code::usage);
    work.seconds = nullptr;
    EXPECT_EQ(choose_pieces(plan, laptop(), work).error().code, Code::usage);
    EXPECT_EQ(choose_pieces(plan, laptop(), work_of(-1)).error().code, Code::usage);
    EXPECT_EQ(choose_pieces(plan, laptop(), work_of(std::nan(""))).error().code, Code::usage);
    work = work_of(1);
    work.dim = 7;
    EXPECT_FALSE(choose_pieces(plan, laptop(), work));
    work = work_of(1);
    work.pieces_max = 0;
    EXPECT_EQ(choose_pieces(plan, laptop(), work).error().code, Code::usage);
    work = work_of(1);
    for (const Index places : {Index{1025}, Index{1} << 40, index_max}) {
        work.places = places;
        const auto refused = choose_pieces(plan, laptop(), work);
        EXPECT_NE(refused.error().message.find("at most 1024 places"), std::string::npos) << refused.error().message;
    }
    work.places = 1024;
    work.pieces_max = 1024;
    EXPECT_EQ(choose_pieces(plan, laptop(), work).error().code, Code::usage);
    work.places = 1;
    work.pieces_max = Index{1} << 40;
    EXPECT_TRUE(choose_pieces(plan, laptop(), work));
}

TEST(ChoosePieces, MachinesSayWhatPiecesCost) {
    const Machine machine =
        parse_machine(
            "machine m\nlevel l devices all message 1us bandwidth 1GB/s\ncopy 1GB/s\npiece 20us slowed 110%\n")
            .value();
    EXPECT_EQ(machine.piece_ps, 20'000'000);
    EXPECT_EQ(machine.slowed_percent, 110);
    EXPECT_EQ(parse_machine(format(machine)), machine);
    for (const char* wrong :
         {"piece", "piece 1us", "piece 1us slowed 90%", "piece 1us slowed 110", "piece 1us slowed 110% x"}) {
        const auto text =
            std::string("machine m\nlevel l devices all message 1us bandwidth 1GB/s\ncopy 1GB/s\n") + wrong;
        EXPECT_FALSE(parse_machine(text)) << wrong;
    }
}

}  // namespace
}  // namespace reshard
