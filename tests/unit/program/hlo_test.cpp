// Scheduled HLO as a program: XLA's order, the arrays and their bytes, the times of a machine, and wrong texts.
#include "reshard/program/hlo.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "reshard/program/schedule.hpp"

namespace reshard {
namespace {

constexpr Index second = 1'000'000'000'000;

std::string step() {
    std::ifstream file(RESHARD_TESTS_DIR "/unit/program/step.hlo");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// A module of one computation on four devices.
std::string module_of(const std::string& lines) {
    return "HloModule m, is_scheduled=true, num_partitions=4\n\nENTRY %main (p: f32[8]) -> f32[8] {\n"
           "  %p = f32[8]{0} parameter(0)\n" +
           lines + "}\n";
}

// Every instruction of step.hlo takes a number of seconds.
Result<Index> stated(const HloInstruction& one) {
    const std::vector<std::pair<std::string, Index>> times = {{"ag0", 1}, {"ag1", 2}, {"dot0", 4}, {"dot1", 8}};
    for (const auto& [name, seconds] : times)
        if (one.name == name) return seconds * second;
    return fail(Code::usage, one.name + " has no time");
}

std::vector<HloInstruction> instructions_of(const std::string& text) {
    std::vector<HloInstruction> seen;
    const auto made = program_of_hlo(text, [&](const HloInstruction& one) -> Result<Index> {
        seen.push_back(one);
        return second;
    });
    EXPECT_TRUE(made.has_value()) << (made ? "" : describe(made.error()));
    return seen;
}

TEST(Hlo, XlaWaitsForAGatherThatCouldBeHidden) {
    const ScheduledHlo made = program_of_hlo(step(), stated).value();
    EXPECT_EQ(made.xla_picoseconds, 15 * second);
    EXPECT_EQ(made.hidden, 2);
    EXPECT_EQ(made.blocking, 0);
    const ScheduleSynthesis schedule = reshard::schedule(made.program).value();
    EXPECT_EQ(schedule.verdict().picoseconds, 13 * second);  // ag1 beside dot0
    EXPECT_EQ(schedule.lower_bound, 13 * second);
    // x, both shards, both gathered arrays and the first result; later the second result is kept.
    EXPECT_EQ(schedule.verdict().places.at(0).peak_bytes, 256 + 256 + 256 + 256 + 128);
    EXPECT_EQ(made.program.tasks.back().after, std::vector<std::string>{"dot0"});
    EXPECT_TRUE(made.program.tasks.back().makes.front().kept);
    EXPECT_EQ(made.program.tasks.front().engine, "network");
}

// The second done moves behind the first fusion.
TEST(Hlo, HiddenCollectivesAreAsXlaRunsThem) {
    const std::string done = "  %got1 = f32[8,8]{1,0} all-gather-done(%ag1)\n";
    const std::string later = "  %dot1 =";
    const std::string text = replaced(replaced(step(), done, ""), later, done + later);
    EXPECT_EQ(program_of_hlo(text, stated).value().xla_picoseconds, 13 * second);
}

TEST(Hlo, InstructionsHaveBytesAndGroups) {
    const auto seen = instructions_of(step());
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_EQ(seen[0].opcode, "all-gather-start");
    EXPECT_EQ(seen[0].collective, "all-gather");
    EXPECT_EQ(seen[0].bytes, 256);  // of the done
    EXPECT_EQ(seen[0].read_bytes, 128);
    EXPECT_EQ(seen[0].op, "jit(step)/gather");
    EXPECT_EQ(seen[0].devices, (std::vector<Index>{0, 1}));  // no groups: all devices
    EXPECT_EQ(seen[1].devices, (std::vector<Index>{0, 1}));  // an iota
    EXPECT_EQ(seen[3].collective, "");
    EXPECT_EQ(seen[3].read_bytes, 512);
}

TEST(Hlo, GroupsPairsAndAsynchronousWrappers) {
    const std::string wrapped =
        "HloModule m, is_scheduled=true, num_partitions=4\n"
        "%wrapped (q: bf16[8]) -> bf16[2] {\n  %q = bf16[8]{0} parameter(0)\n"
        "  ROOT %rs = bf16[2]{0} reduce-scatter(%q), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}\n}\n"
        "ENTRY main (p: bf16[8]) -> bf16[2] {\n  p = bf16[8]{0} parameter(0)\n"
        "  s = ((bf16[8]{0}), bf16[2]{0}, /*index=2*/u32[]) async-start(p), calls=%wrapped\n"
        "  u = ((bf16[8]{0}), bf16[2]{0}, u32[]) async-update(s)\n"
        "  ROOT d = bf16[2]{0} async-done(u)\n}\n";
    const auto scatter = instructions_of(wrapped);
    ASSERT_EQ(scatter.size(), 1U);
    EXPECT_EQ(scatter[0].collective, "reduce-scatter");
    EXPECT_EQ(scatter[0].bytes, 4);
    EXPECT_EQ(scatter[0].devices, (std::vector<Index>{0, 2}));
    const auto permute = instructions_of(
        module_of("  ROOT %c = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}, channel_id=1\n"));
    EXPECT_EQ(permute.at(0).devices, (std::vector<Index>{0, 1}));
    EXPECT_EQ(permute.at(0).targets, (std::vector<Index>{1, 0}));
    const auto reduce = instructions_of(
        module_of("  ROOT %r = (f32[8]{0}, pred[3]{0}, token[]) all-reduce(%p), replica_groups={{1,3},{0,2}}\n"));
    EXPECT_EQ(reduce.at(0).devices, (std::vector<Index>{1, 3}));
    EXPECT_EQ(reduce.at(0).bytes, 35);
}

TEST(Hlo, TimesOfAMachine) {
    const Machine machine =
        parse_machine("machine m\nlevel link devices all message 1us bandwidth 1GB/s\ncopy 2GB/s\n").value();
    const HloTimes times = hlo_times_on(machine);
    HloInstruction one{"i", "fusion"};
    one.bytes = 3'000'000;
    one.read_bytes = 1'000'000;
    EXPECT_EQ(times(one).value(), second / 500);  // 4 MB at 2 GB/s
    one.devices = {0, 1, 2, 3};
    one.bytes = 4'000'000;
    // A device receives 3 MB of 4, in an all_to_all too, twice as much of a sum, and 12 MB of a sum that it scatters.
    const std::vector<std::pair<std::string, Index>> received = {
        {"all-gather", 3}, {"all-to-all", 3}, {"all-reduce", 6}, {"reduce-scatter", 12}};
    for (const auto& [kind, megabytes] : received) {
        one.collective = kind;
        const Index least = megabytes * second / 1'000;
        EXPECT_GE(times(one).value(), least) << kind;
        EXPECT_LE(times(one).value(), 2 * least) << kind;
    }
    one.collective = "collective-permute";
    one.targets = {1, 2, 3, 0};
    EXPECT_GE(times(one).value(), 4 * second / 1'000);
    EXPECT_LE(times(one).value(), 8 * second / 1'000);
    one.targets = one.devices;
    EXPECT_EQ(times(one).value(), 0);
    one.collective = "all-gather";
    one.targets = {};
    one.devices = {2};
    EXPECT_EQ(times(one).value(), 0);
    one.devices = {};
    EXPECT_EQ(times(one).error().code, Code::unsupported);
    EXPECT_EQ(times({"loop", "while"}).error().code, Code::unsupported);
    EXPECT_EQ(picoseconds_of(one, 1.5).value(), 3 * second / 2);
    for (const double wrong : {-1.0, 1e9, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_EQ(picoseconds_of(one, wrong).error().code, Code::usage);
}

TEST(Hlo, WrongTextsAreErrors) {
    const auto error = [](const std::string& text, std::string_view computation = {}) {
        const auto made = program_of_hlo(
            text, [](const HloInstruction&) -> Result<Index> { return 1; }, computation);
        return made ? Error{} : made.error();
    };
    EXPECT_EQ(error(replaced(step(), "is_scheduled=true", "x")).code, Code::usage);
    EXPECT_NE(error(step(), "body").message.find("no computation body; it has main, region"), std::string::npos);
    EXPECT_EQ(error("HloModule m, is_scheduled=true\n").code, Code::usage);
    EXPECT_EQ(error(module_of("  %a = (f32[8], f32[8 add(%p)\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0} add(%p\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0}\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0} add(%p)\n  %a = f32[8]{0} add(%p)\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[99999999999,99999999999]{0} add(%p)\n")).code, Code::overflow);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0} all-gather(%p), replica_groups={{x}}\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0} all-gather(%p), replica_groups=[3,2]<=[4]\n")).code, Code::syntax);
    EXPECT_EQ(error(module_of("  %a = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1,2}}\n")).code,
              Code::syntax);
    const std::string text = step();
    for (std::size_t length = 0; length < text.size(); ++length)
        (void)program_of_hlo(text.substr(0, length), hlo_times_on(laptop()));
}

}  // namespace
}  // namespace reshard
