// Pieces chosen by the price of a plan.
#include "reshard/overlap/choose_pieces.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reshard/notation.hpp"

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

TEST(ChoosePieces, ErrorsSayWhatIsWrong) {
    const Judged<Plan> plan = gather();
    PieceWork work = work_of(1);
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
