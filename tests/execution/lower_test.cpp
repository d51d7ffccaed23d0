// The places of tiles and the work of a rank, with no backend.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reshard/check.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"
#include "src/plan/buffer_assignment.hpp"

namespace reshard {
namespace {

using enum StepKind;

struct Stop {
    StepKind kind;
    const char* layout;
};

Plan plan_through(std::string_view mesh_text, std::string_view source, const std::vector<Stop>& stops) {
    const Mesh mesh = *parse_mesh(mesh_text);
    Plan plan{*parse_layout(mesh, source), *parse_layout(mesh, source), {}};
    for (const Stop& stop : stops) {
        plan.steps.push_back({stop.kind, *parse_layout(mesh, stop.layout)});
        plan.target = plan.steps.back().layout;
    }
    return plan;
}

// Bytes of a buffer that a dense slot covers.
std::pair<Index, Index> bytes_of_slot(const Slot& slot, Index element_bytes) {
    const Index begin = slot.offset_bytes + slot.storage.offset * element_bytes;
    return {begin, begin + count(slot.tile) * element_bytes};
}

void expect_sound(const Plan& plan) {
    const auto verdict = check(plan);
    ASSERT_TRUE(verdict) << verdict.error().message << '\n' << format(plan);
    const Index element_bytes = size_of(plan.source.dtype);
    Index footprint = 0;
    for (Index rank = 0; rank < device_count(plan.source); ++rank) {
        const auto lowered = lower(plan, rank);
        ASSERT_TRUE(lowered) << lowered.error().message;
        ASSERT_FALSE(lowered->steps.empty());
        EXPECT_EQ(lowered->steps.front().from.buffer, BufferId::source);
        EXPECT_EQ(lowered->steps.back().to.buffer, BufferId::target);
        for (const RankStep& step : lowered->steps) {
            const auto [from_begin, from_end] = bytes_of_slot(step.from, element_bytes);
            const auto [to_begin, to_end] = bytes_of_slot(step.to, element_bytes);
            const bool apart = step.from.buffer != step.to.buffer || from_end <= to_begin || to_end <= from_begin;
            EXPECT_TRUE(apart) << "rank " << rank << ", step " << step.step << '\n' << format(plan);
            EXPECT_NE(step.to.buffer, BufferId::source);
            const Index room = step.to.buffer == BufferId::target ? lowered->target_bytes : lowered->workspace_bytes;
            EXPECT_LE(to_end, room) << "rank " << rank << ", step " << step.step << '\n' << format(plan);
        }
        footprint = std::max(footprint, lowered->source_bytes + lowered->target_bytes + lowered->workspace_bytes);
    }
    const BufferAssignment places = assign_buffers(plan, capacities_of(plan, false));
    EXPECT_EQ(footprint, tile_bytes(plan.source) + tile_bytes(plan.target) + places.workspace_bytes) << format(plan);
    if (divides(plan.target)) {
        EXPECT_EQ(footprint, verdict->footprint_bytes) << format(plan);
    }
}

TEST(Lower, NoStepReadsWhatItWritesAndTheFootprintIsTheJudges) {
    expect_sound(plan_through("x=2", "f32[8@x]", {}));
    expect_sound(plan_through("x=2,y=2", "f32[8,8]", {{slice, "f32[8@x,8]"}, {slice, "f32[8@x,8@y]"}}));
    expect_sound(plan_through("x=2,y=2", "f32[8@x,8]", {{all_to_all, "f32[8,8@x]"}, {all_to_all, "f32[8@x,8]"}}));
    expect_sound(plan_through("x=2,y=2", "f32[8@x,8]",
                              {{all_to_all, "f32[8,8@x]"}, {all_to_all, "f32[8@x,8]"}, {all_gather, "f32[8,8]"}}));
    expect_sound(plan_through("x=2,y=2", "f32[8@x]",
                              {{all_gather, "f32[8]"},
                               {slice, "f32[8@y]"},
                               {all_gather, "f32[8]"},
                               {slice, "f32[8@x]"},
                               {all_gather, "f32[8]"},
                               {slice, "f32[8@(x,y)]"},
                               {permute, "f32[8@(y,x)]"}}));
    expect_sound(plan_through("x=2,y=2", "u16[7@(x,y),5]",
                              {{exchange, "u16[7@y,5]"},
                               {exchange, "u16[7,5@x]"},
                               {exchange, "u16[7,5@(x,y)]"},
                               {exchange, "u16[7@x,5]"},
                               {exchange, "u16[7@(y,x),5]"}}));
    // The intermediate of full size fits the full target tile, but not the short ones.
    expect_sound(plan_through("x=4", "f32[9]", {{exchange, "f32[9@x]"}, {exchange, "f32[9]"}, {exchange, "f32[9@x]"}}));
    expect_sound(plan_through("x=4", "f32[9,4@x]",
                              {{exchange, "f32[9@x,4]"}, {exchange, "f32[9,4@x]"}, {exchange, "f32[9@x,4]"}}));
}

TEST(Lower, SlicesAreViews) {
    const Plan plan = plan_through("x=2,y=2", "f32[8,8]", {{slice, "f32[8@x,8]"}, {all_to_all, "f32[8,8@x]"}});
    const auto lowered = lower(plan, 3);
    ASSERT_TRUE(lowered);
    ASSERT_EQ(lowered->steps.size(), 1U);
    EXPECT_EQ(lowered->steps[0].step, 1U);
    EXPECT_EQ(as_box(lowered->steps[0].from.tile), (Box{{0, 8}, {0, 8}}));
    EXPECT_EQ(as_box(lowered->steps[0].schedule.source_tile), (Box{{4, 8}, {0, 8}}));
    EXPECT_EQ(lowered->workspace_bytes, 0);
}

// The copy reads the type before the cast, and writes the type behind it.
TEST(Lower, ACastIsPartOfTheCopyNextToIt) {
    struct Case {
        Plan plan;
        std::vector<std::size_t> steps;
        Index workspace_bytes;
    };
    const auto in = [](const char* source, const std::vector<Stop>& stops) {
        return plan_through("x=2,y=2", source, stops);
    };
    const std::vector<Case> cases = {
        {in("f32[8@x,8]", {{cast, "bf16[8@x,8]"}, {all_to_all, "bf16[8,8@x]"}}), {1}, 0},
        {in("bf16[8@x,8]", {{all_to_all, "bf16[8,8@x]"}, {cast, "f32[8,8@x]"}}), {0}, 0},
        {in("f32[8,8]", {{slice, "f32[8@x,8]"}, {cast, "bf16[8@x,8]"}, {all_to_all, "bf16[8,8@x]"}}), {2}, 0},
        {in("f32[8@x,8]", {{view, "f32[64@x]"}, {cast, "bf16[64@x]"}, {all_gather, "bf16[64]"}, {view, "bf16[8,8]"}}),
         {2},
         0},
        {in("bf16[8@x,8]", {{view, "bf16[64@x]"}, {all_gather, "bf16[64]"}, {cast, "f32[64]"}, {view, "f32[8,8]"}}),
         {1},
         0},
        // A tile between two copies has the type that the second one reads.
        {in("f32[8@x,8]", {{all_to_all, "f32[8,8@x]"}, {cast, "bf16[8,8@x]"}, {all_to_all, "bf16[8@x,8]"}}),
         {0, 2},
         128},
        // Casts that no copy carries out.
        {in("f32[8,8]", {{slice, "f32[8@x,8]"}, {cast, "bf16[8@x,8]"}}), {1}, 0},
        {in("f32[8,8]{U:x}", {{reduce_scatter, "f32[8@x,8]"}, {cast, "bf16[8@x,8]"}}), {0, 1}, 128},
    };
    for (const Case& one : cases) {
        const auto lowered = lower(one.plan, 3);
        ASSERT_TRUE(lowered) << lowered.error().message << '\n' << format(one.plan);
        std::vector<std::size_t> steps;
        for (const RankStep& step : lowered->steps) steps.push_back(step.step);
        EXPECT_EQ(steps, one.steps) << format(one.plan);
        EXPECT_EQ(lowered->workspace_bytes, one.workspace_bytes) << format(one.plan);
        EXPECT_EQ(check(one.plan)->footprint_bytes,
                  lowered->source_bytes + lowered->target_bytes + one.workspace_bytes);
        EXPECT_EQ(lowered->steps.front().from_dtype, one.plan.source.dtype);
        EXPECT_EQ(lowered->steps.back().to_dtype, one.plan.target.dtype);
        for (std::size_t i = 1; i < lowered->steps.size(); ++i)
            EXPECT_EQ(lowered->steps[i].from_dtype, lowered->steps[i - 1].to_dtype);
        EXPECT_EQ(std::ranges::count_if(lowered->steps, casts), 1) << format(one.plan);
        for (const RankStep& step : lowered->steps)
            EXPECT_EQ(sent_dtype(step), casts(step) ? DType::bf16 : step.from_dtype);
    }
}

TEST(Lower, TheTargetsMemoryIsUsedOnlyWhereItIsDense) {
    const Plan plan = plan_through(
        "x=2", "f32[8@x,8]", {{all_to_all, "f32[8,8@x]"}, {all_to_all, "f32[8@x,8]"}, {all_to_all, "f32[8,8@x]"}});
    const auto dense = lower(plan, 0, {std::nullopt, Storage{3, {1, 8}}});
    ASSERT_TRUE(dense);
    EXPECT_EQ(dense->workspace_bytes, 128);
    EXPECT_EQ(dense->steps[0].to.buffer, BufferId::target);
    EXPECT_EQ(dense->steps[0].to.offset_bytes, 12);
    const auto padded = lower(plan, 0, {std::nullopt, Storage{0, {1, 9}}});
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->workspace_bytes, 256);
    EXPECT_EQ(padded->steps[0].to.buffer, BufferId::workspace);
}

TEST(Lower, RanksBeyondTheMeshDoNothing) {
    const Plan plan = plan_through("x=2", "f32[4@x]", {{exchange, "f32[4]"}});
    const auto lowered = lower(plan, 2);
    ASSERT_TRUE(lowered);
    ASSERT_EQ(lowered->steps.size(), 1U);
    EXPECT_TRUE(lowered->steps[0].schedule.sends.empty() && lowered->steps[0].schedule.receives.empty());
    EXPECT_EQ(lowered->source_bytes + lowered->target_bytes + lowered->workspace_bytes, 0);
    EXPECT_EQ(lower(plan, -1).error().code, Code::mismatch);
}

}  // namespace
}  // namespace reshard
