#include <gtest/gtest.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Layout at(const Mesh& mesh, const char* text) { return *parse_layout(mesh, text); }

TEST(MachineUnit, BuiltInMachinesRoundTripAsText) {
    for (const char* name :
         {"laptop", "dgx-h100:nodes=1", "dgx-h100:nodes=64", "tpu-v5p:4x4x8", "tpu-v5p:1x1x1",
          "ethernet:nodes=3,per_node=2", "ethernet:nodes=4,per_node=1", "mi300x", "p3.8xlarge:hosts=5"}) {
        const auto machine = make_machine(name);
        ASSERT_TRUE(machine.has_value()) << name << ": " << machine.error().message;
        const auto read = parse_machine(format(*machine));
        ASSERT_TRUE(read.has_value()) << format(*machine) << read.error().message;
        EXPECT_EQ(*read, *machine) << name;
    }
}

TEST(MachineUnit, BadMachinesSayWhere) {
    for (const char* name :
         {"", "laptop:", "dgx-h100", "dgx-h100:nodes=0", "dgx-h100:nodes=x", "tpu-v5p:4x4", "tpu-v5p:4x4x4x4",
          "ethernet:nodes=2", "dgx-h100:nodes=99999999999999999999", "mi300x:8", "p3.8xlarge", "p3.8xlarge:hosts=0"})
        EXPECT_FALSE(make_machine(name).has_value()) << name;
    const std::string good = "machine m\nlevel a devices 4 message 1us bandwidth 1GB/s\ncopy 1GB/s\n";
    ASSERT_TRUE(parse_machine(good).has_value());
    for (const char* line :
         {"level b devices 6 message 1us bandwidth 1GB/s\n", "level b devices 4 message 1us bandwidth 1GB/s\n",
          "level b devices 8 message 1 bandwidth 1GB/s\n", "level b devices 8 message 1us bandwidth 0GB/s\n",
          "level b devices 8 message 1us\n", "level b devices 8 message 1us bandwidth 1GB/s pair\n",
          "level b devices 8 message 1us bandwidth 1GB/s pair 0GB/s\n", "switch\n", "copy 1GB\n", "copy 1GB/s 3ns\n",
          "copy 1GB/s run 3\n", "copy 1GB/s run 3ns 4\n", "level b devices 8 message 1us bandwidth 99EB/s\n"}) {
        const auto machine = parse_machine(good + line);
        ASSERT_FALSE(machine.has_value()) << line;
        EXPECT_GE(machine.error().offset, good.size()) << line;
    }
    EXPECT_EQ(parse_machine("level a devices 4 message 1us bandwidth 1GB/s\n").error().code, Code::syntax);
}

TEST(MachineUnit, AGroupInsideANodeUsesNoSlowLink) {
    const Mesh mesh{{"node", 4}, {"gpu", 8}};
    const Machine machine = *make_machine("dgx-h100:nodes=4");
    const Layout before = at(mesh, "f32[4096@(node,gpu)]");
    const Step inside{StepKind::all_gather, at(mesh, "f32[4096@node]")};
    const std::vector<Index> loads = level_loads(before, inside, *type_step(before, inside), machine);
    EXPECT_EQ(loads, (std::vector<Index>{7 * 128, 0}));
    const Step exchange{StepKind::exchange, at(mesh, "f32[4096@node]")};
    EXPECT_EQ(level_loads(before, exchange, *type_step(before, exchange), machine)[1], 0);
    const Step across{StepKind::all_gather, at(mesh, "f32[4096]")};
    const std::vector<Index> both = level_loads(before, across, *type_step(before, across), machine);
    EXPECT_EQ(both, (std::vector<Index>{7 * 128, 24 * 128}));
}

// Each node has one card of 6 GB/s. The data of one mesh leaves over one card, or over one card for each node.
TEST(MachineUnit, MeshesInDifferentNodesMeetOverTheCards) {
    const Machine machine = *make_machine("ethernet:nodes=4,per_node=4");
    const Mesh source_mesh{{"a", 4}};
    const Mesh target_mesh({{"c", 4}}, {4, 5, 6, 7});
    const Layout source = at(source_mesh, "i32[268435456@a]");
    const Step step{StepKind::exchange, at(target_mesh, "i32[268435456@c]")};
    const Times times = step_times(source, step, *type_step(source, step), machine);
    EXPECT_EQ(times.levels[0], 0);
    EXPECT_NEAR(static_cast<double>(times.levels[1]) * 1e-12, 1.074e9 / 6e9, 1e-3);
    const Mesh apart({{"c", 4}}, {4, 8, 12, 16});
    const Step spread{StepKind::exchange, at(apart, "i32[268435456@c]")};
    // The data still leaves a single node.
    EXPECT_EQ(step_times(source, spread, *type_step(source, spread), machine).levels, times.levels);
}

TEST(MachineUnit, AnAllGatherIsPricedByTheNodesOfItsDevices) {
    const Machine machine = *make_machine("ethernet:nodes=4,per_node=4");
    const auto loads = [&](std::vector<Index> devices) {
        const Mesh mesh({{"x", 4}}, std::move(devices));
        const Layout before = at(mesh, "i32[4096@x]");
        const Step step{StepKind::all_gather, at(mesh, "i32[4096]")};
        return level_loads(before, step, *type_step(before, step), machine);
    };
    EXPECT_EQ(loads({0, 4, 8, 12}), (std::vector<Index>{0, 3072}));        // four nodes
    EXPECT_EQ(loads({2, 3, 4, 5}), (std::vector<Index>{1024, 2 * 2048}));  // two nodes, two devices a card
    EXPECT_EQ(loads({0, 1, 2, 3}), (std::vector<Index>{3072, 0}));
    EXPECT_EQ(loads({1, 2, 3, 4}), (std::vector<Index>{2048, 3072}));  // three devices on one card
}

TEST(MachineUnit, WhatReplicatesInsideANodeIsFetchedIntoItOnce) {
    const Mesh mesh{{"node", 4}, {"gpu", 8}};
    const Layout source = at(mesh, "f32[65536@(node,gpu),4096]");
    const Layout target = at(mesh, "f32[65536,4096@node]");
    Options options;
    options.machine = *make_machine("dgx-h100:nodes=4");
    const auto made = synthesize(source, target, options);
    ASSERT_TRUE(made.has_value());
    std::vector<StepKind> kinds;
    for (const Step& step : made->plan().steps)
        if (step.kind != StepKind::view) kinds.push_back(step.kind);
    ASSERT_EQ(kinds.size(), 2U);
    EXPECT_EQ(kinds.back(), StepKind::all_gather);
    const Step direct{StepKind::exchange, target};
    EXPECT_LT(2 * made->picoseconds, step_picoseconds(source, direct, *type_step(source, direct), options.machine));
}

}  // namespace
}  // namespace reshard
