// Places and sizes of the tiles between steps, computed by hand: with the target's memory, the source's, and neither.
#include "src/plan/buffer_assignment.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reshard/check.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Plan plan_from(const char* text) {
    auto plan = parse_plan(text);
    EXPECT_TRUE(plan) << plan.error().message;
    return *plan;
}

AssignedBuffer at(BufferId place, Index offset_bytes = 0) { return {place, offset_bytes}; }

constexpr Capacities no_room;

// Tiles of 128 bytes on both devices. The source tile is dead when the second tile is written.
Plan three_turns() {
    return plan_from(
        "mesh x=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\nall_to_all f32[8@x,8]\nall_to_all f32[8,8@x]\n"
        "target f32[8,8@x]\n");
}

TEST(Placement, ADonatedSourceTakesTheSecondTile) {
    const Plan plan = three_turns();
    const Capacities rooms = capacities_of(plan, true);
    EXPECT_EQ(rooms, (Capacities{128, 128, 0}));
    const BufferAssignment donated = assign_buffers(plan, rooms);
    EXPECT_EQ(donated.places, (std::vector{at(BufferId::target), at(BufferId::source), at(BufferId::target)}));
    EXPECT_EQ(donated.workspace_bytes, 0);
    const BufferAssignment kept = assign_buffers(plan, capacities_of(plan, false));
    EXPECT_EQ(kept.places, (std::vector{at(BufferId::target), at(BufferId::workspace), at(BufferId::target)}));
    EXPECT_EQ(kept.workspace_bytes, 128);
    EXPECT_EQ(check(plan, {.memory = {.donate = true}})->footprint_bytes, 256);
    EXPECT_EQ(check(plan)->footprint_bytes, 384);

    const auto lowered = lower(plan, 1, {}, {.donate = true});
    ASSERT_TRUE(lowered);
    EXPECT_EQ(lowered->workspace_bytes, 0);
    EXPECT_EQ(lowered->steps[1].to.buffer, BufferId::source);
    EXPECT_EQ(lowered->steps[1].to.offset_bytes, 0);
    EXPECT_EQ(lowered->steps[2].from.buffer, BufferId::source);
}

// A tile in the source's memory lies exactly where the caller's elements are. A strided source has bytes that are not
// ours.
TEST(Placement, ASourceIsWrittenOnlyWhereItIsDense) {
    const Plan plan = three_turns();
    const auto shifted = lower(plan, 0, {Storage{3, {1, 4}}, std::nullopt}, {.donate = true});  // columns
    ASSERT_TRUE(shifted);
    EXPECT_EQ(shifted->workspace_bytes, 0);
    EXPECT_EQ(shifted->steps[1].to.offset_bytes, 12);
    const auto padded = lower(plan, 0, {Storage{0, {9, 1}}, std::nullopt}, {.donate = true});
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->workspace_bytes, 128);
    EXPECT_EQ(padded->steps[1].to.buffer, BufferId::workspace);
    const auto repeated =
        lower(plan, 0, {Storage{0, {0, 1}}, std::nullopt}, {.donate = true});  // one row, read four times
    ASSERT_TRUE(repeated);
    EXPECT_EQ(repeated->workspace_bytes, 128);
}

// Views are the caller's memory in the shape of the steps between them: no tile is written for them.
TEST(Placement, AViewSplitsTheStridesOfAStorage) {
    const Plan plan = plan_from(
        "mesh x=2,y=2\nsource f32[8,8@x]\nview f32[2,4,8@x]\nslice f32[2,4@y,8@x]\nall_to_all f32[2@x,4@y,8]\n"
        "view f32[8@(x,y),8]\ntarget f32[8@(x,y),8]\n");
    const auto lowered = lower(plan, 0, {Storage{3, {1, 8}}, Storage{0, {10, 1}}});
    ASSERT_TRUE(lowered) << lowered.error().message;
    ASSERT_EQ(lowered->steps.size(), 1U);
    const RankStep& step = lowered->steps[0];
    EXPECT_EQ(step.step, 2U);
    EXPECT_EQ(step.from.tile, tile(plan.steps[0].layout, 0));
    EXPECT_EQ(step.from.storage, (Storage{3, {4, 1, 8}}));
    EXPECT_EQ(step.to.tile, tile(plan.steps[2].layout, 0));
    EXPECT_EQ(step.to.storage.strides[1], 10);
    EXPECT_EQ(step.to.storage.strides[2], 1);
    EXPECT_EQ(lowered->source_bytes, 4 * (3 + 7 + 3 * 8 + 1));
    EXPECT_EQ(lowered->target_bytes, 4 * (10 + 7 + 1));
    EXPECT_EQ(lowered->workspace_bytes, 0);
}

TEST(Placement, AViewMergesDimensionsOfDenseTilesOnly) {
    const Plan plan = plan_from(
        "mesh x=2\nsource f32[4,2,3]\nview f32[8,3]\nslice f32[8@x,3]\nview f32[4@x,2,3]\ntarget f32[4@x,2,3]\n");
    const auto dense = lower(plan, 1);
    ASSERT_TRUE(dense) << dense.error().message;
    EXPECT_EQ(dense->steps[0].from.storage, (Storage{0, {3, 1}}));
    const auto strided = lower(plan, 1, {Storage{0, {8, 3, 1}}, std::nullopt});
    ASSERT_FALSE(strided);
    EXPECT_EQ(strided.error().code, Code::unsupported);
    EXPECT_NE(strided.error().message.find("give the tile in row-major order"), std::string::npos);
}

// The plan moves a third of the source. Another third, before or behind it, is free at once.
TEST(Placement, WhatASliceLeavesOfTheSourceIsFreeAtOnce) {
    const Plan plan = plan_from(
        "mesh x=2,y=3\nsource f32[12@x,4]\nslice f32[12@(x,y),4]\npermute f32[12@(y,x),4]\n"
        "all_gather f32[12@y,4]\ntarget f32[12@y,4]\n");
    EXPECT_EQ(capacities_of(plan, true), (Capacities{64, 96, 32}));
    EXPECT_EQ(check(plan)->footprint_bytes, 96 + 64 + 32);
    EXPECT_EQ(check(plan, {.memory = {.donate = true}})->footprint_bytes, 96 + 64);
    const std::array<Index, 3> starts = {32, 0, 0};  // of slices 0, 1 and 2; of two equal runs the first counts
    for (Index device = 0; device < 6; ++device) {
        const auto lowered = lower(plan, device, {}, {.donate = true});
        ASSERT_TRUE(lowered);
        EXPECT_EQ(lowered->workspace_bytes, 0);
        EXPECT_EQ(lowered->steps[0].to.buffer, BufferId::source);
        EXPECT_EQ(lowered->steps[0].to.offset_bytes, starts[static_cast<std::size_t>(device % 3)]) << device;
    }
    // In column-major order, slices of columns would be runs, but slices of rows are not.
    const auto columns = lower(plan, 0, {Storage{0, {1, 6}}, std::nullopt}, {.donate = true});
    ASSERT_TRUE(columns);
    EXPECT_EQ(columns->workspace_bytes, 32);
    EXPECT_EQ(columns->steps[0].to.buffer, BufferId::workspace);
}

TEST(Placement, WhatIsUnreadIsKnownForRunsOnly) {
    const auto unread = [](const char* source, const char* slice, const char* target) {
        const std::string text =
            fmt::format("mesh x=4,y=2\nsource {}\nslice {}\nall_gather {}\ntarget {}\n", source, slice, target, target);
        return capacities_of(plan_from(text.c_str()), true).unread;
    };
    EXPECT_EQ(unread("f32[8,6]", "f32[8@x,6]", "f32[8,6]"), 2 * 48);         // of 4 runs of 48 bytes
    EXPECT_EQ(unread("f32[8,6]", "f32[8@y,6]", "f32[8,6]"), 96);             // of 2
    EXPECT_EQ(unread("f32[8,6]", "f32[8,6@y]", "f32[8,6]"), 0);              // columns
    EXPECT_EQ(unread("f32[8@(x,y),6]", "f32[8@(x,y),6]", "f32[8@x,6]"), 0);  // nothing is cut
    EXPECT_EQ(unread("f32[8,6]", "f32[8@(x,y),6]", "f32[8@x,6]"), 4 * 24);   // of 8
    EXPECT_EQ(unread("f32[4,6]", "f32[4@x,6@y]", "f32[4,6]"), 4 * 12);       // half a row of four
    EXPECT_EQ(unread("f32[9,6]", "f32[9@x,6]", "f32[9,6]"), 0);              // tiles differ
    EXPECT_EQ(capacities_of(three_turns(), false).unread, 0);
}

// A single tile between two steps gains nothing.
TEST(Placement, TwoStepsNeedTheirTileBetween) {
    const Plan plan =
        plan_from("mesh x=2,y=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\nall_gather f32[8,8]\ntarget f32[8,8]\n");
    EXPECT_EQ(assign_buffers(plan, capacities_of(plan, true)).workspace_bytes, 128);
    const Plan one = plan_from("mesh x=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\ntarget f32[8,8@x]\n");
    EXPECT_EQ(assign_buffers(one, capacities_of(one, true)).workspace_bytes, 0);
    EXPECT_EQ(lower(one, 0, {}, {.donate = true})->steps.front().to.buffer, BufferId::target);
}

// Tiles of 64, 128 and 64 bytes with no other memory: two consecutive tiles lie at the two ends of the workspace.
TEST(Placement, TheWorkspaceHoldsTwoThatFollowEachOther) {
    const Plan plan = plan_from(
        "mesh x=2,y=2\nsource f32[8@x,8]\nexchange f32[8@(x,y),8]\nexchange f32[8,8@x]\nexchange f32[8,8@(x,y)]\n"
        "exchange f32[8@y,8]\ntarget f32[8@y,8]\n");
    const BufferAssignment nowhere = assign_buffers(plan, no_room);
    EXPECT_EQ(nowhere.workspace_bytes, 64 + 128);
    EXPECT_EQ(nowhere.places, (std::vector{at(BufferId::workspace), at(BufferId::workspace, 64),
                                           at(BufferId::workspace), at(BufferId::target)}));
    const BufferAssignment narrow = assign_buffers(plan, {64, 0, 0});
    EXPECT_EQ(narrow.workspace_bytes, 64 + 128);
    const BufferAssignment kept = assign_buffers(plan, capacities_of(plan, false));
    EXPECT_EQ(kept.workspace_bytes, 64);
    EXPECT_EQ(kept.places, (std::vector{at(BufferId::workspace), at(BufferId::target), at(BufferId::workspace),
                                        at(BufferId::target)}));
    const BufferAssignment donated = assign_buffers(plan, capacities_of(plan, true));
    EXPECT_EQ(donated.workspace_bytes, 64);  // the first tile and the last before the target
    EXPECT_EQ(check(plan, {.memory = {.donate = true}})->footprint_bytes, 128 + 128 + 64);
}

// A device that has no source tile has no room there, and needs none.
TEST(Placement, OnlyTilesOfTheSameDevicesLieInAnEnd) {
    const auto from = *parse_mesh("x=2");
    const auto to = *parse_mesh("y=2[2,3]");
    const auto layout = [](const Mesh& mesh, const char* text) { return *parse_layout(mesh, text); };
    Plan plan{layout(from, "f32[8@x,8]"), layout(to, "f32[8@y,8]"), {}};
    for (const char* text : {"f32[8,8@x]", "f32[8@x,8]", "f32[8,8@x]"})
        plan.steps.push_back({StepKind::exchange, layout(from, text)});
    plan.steps.push_back({StepKind::exchange, plan.target});
    const BufferAssignment donated = assign_buffers(plan, capacities_of(plan, true));
    EXPECT_EQ(donated.workspace_bytes, 128);
    EXPECT_EQ(donated.places, (std::vector{at(BufferId::workspace), at(BufferId::source), at(BufferId::workspace),
                                           at(BufferId::target)}));
    EXPECT_EQ(assign_buffers(plan, capacities_of(plan, false)).workspace_bytes, 256);
    for (Index device = 0; device < 4; ++device)
        EXPECT_EQ(lower(plan, device, {}, {.donate = true})->workspace_bytes, 128);
}

}  // namespace
}  // namespace reshard
