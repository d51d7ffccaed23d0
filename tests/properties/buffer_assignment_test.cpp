// The places of tiles between source and target: as good as a trial of all places, never where a step still reads, and
// on every rank within the judge's figures.
#include "src/plan/buffer_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reshard/execute.hpp"
#include "reshard/text.hpp"
#include "src/copy/copy.hpp"
#include "support/anywhere.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {

namespace {

// Tries all ways to place the tiles from number `i` on, and finds the least workspace.
struct Trial {
    const Plan& plan;
    const Capacities& rooms;
    std::vector<std::size_t> written;

    [[nodiscard]] Index bytes(std::size_t i) const { return tile_bytes(written_layout(plan, written[i])); }
    [[nodiscard]] bool on(std::size_t i, const Mesh& mesh) const {
        return same_devices(plan.steps[written[i]].layout.mesh, mesh);
    }
    [[nodiscard]] Index least(std::size_t i, BufferId before) const {
        if (i + 1 >= written.size()) return before == BufferId::target ? index_max : 0;
        Index best =
            std::max(bytes(i) + (before == BufferId::workspace ? bytes(i - 1) : 0), least(i + 1, BufferId::workspace));
        if (before != BufferId::target && bytes(i) <= rooms.target && on(i, plan.target.mesh))
            best = std::min(best, least(i + 1, BufferId::target));
        if (before != BufferId::source && bytes(i) <= rooms.source && on(i, plan.source.mesh))
            best = std::min(best, least(i + 1, BufferId::source));
        return best;
    }
    [[nodiscard]] Index least() const {
        if (written.size() < 2) return 0;
        Index best = std::max(bytes(0), least(1, BufferId::workspace));
        if (bytes(0) <= rooms.target && on(0, plan.target.mesh)) best = std::min(best, least(1, BufferId::target));
        if (bytes(0) <= rooms.unread) best = std::min(best, least(1, BufferId::source));
        return best;
    }
};

// The bytes of a tile in the buffer of its slot: [first byte, one past the last byte).
std::pair<Index, Index> reach_of(const Slot& slot, const Tile& tile, Index element_bytes) {
    if (count(tile) == 0) return {0, 0};
    Index begin = index_max;
    Index end = 0;
    for (const Box& box : boxes_of(tile)) {
        const Region region = region_of(slot, box, element_bytes);
        Index last = region.offset_bytes + element_bytes;
        for (std::size_t k = 0; k < region.extents.size(); ++k)
            last += (region.extents[k] - 1) * region.strides_bytes[k];
        begin = std::min(begin, region.offset_bytes);
        end = std::max(end, last);
    }
    return {begin, end};
}

// Empty if every step writes only inside buffers that it may write, and never where it reads.
std::string fault_of(const RankPlan& lowered, bool donate) {
    for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
        const RankStep& step = lowered.steps[i];
        const auto [read, read_end] = reach_of(step.from, step.schedule.source_tile, size_of(step.from_dtype));
        const auto [begin, end] = reach_of(step.to, step.to.tile, size_of(step.to_dtype));
        const Slot* written = i == 0 ? nullptr : &lowered.steps[i - 1].to;
        if (written == nullptr ? step.from.buffer != BufferId::source
                               : step.from.buffer != written->buffer || step.from.offset_bytes != written->offset_bytes)
            return fmt::format("step {} does not read what was written before it", i);
        if (begin == end) continue;
        const bool apart = step.from.buffer != step.to.buffer || read_end <= begin || end <= read;
        if (!apart) return fmt::format("step {} reads where it writes", i);
        const Index room = step.to.buffer == BufferId::source   ? lowered.source_bytes
                           : step.to.buffer == BufferId::target ? lowered.target_bytes
                                                                : lowered.workspace_bytes;
        if (end > room) return fmt::format("step {} writes past a buffer", i);
        if (step.to.buffer == BufferId::source && !donate)
            return fmt::format("step {} writes a source that is kept", i);
    }
    return {};
}

// Expects places as good as a trial of all places, sound on all ranks, and within the judge's figures.
void expect_placed(const Plan& plan) {
    Index without = 0;
    for (const bool donate : {false, true}) {
        const Capacities rooms = capacities_of(plan, donate);
        const BufferAssignment places = assign_buffers(plan, rooms);
        RC_ASSERT(places.workspace_bytes == (Trial{plan, rooms, places.written}.least()));
        if (donate) RC_ASSERT(places.workspace_bytes <= without);
        without = places.workspace_bytes;
        const auto verdict = check(plan, {.memory = {.donate = donate}});
        RC_ASSERT(verdict.has_value());
        Index most = 0;
        for (Index rank = 0; rank < std::min<Index>(world_size(plan), 64); ++rank) {
            const auto lowered = lower(plan, rank, {}, {.donate = donate});
            RC_ASSERT(lowered.has_value());
            RC_ASSERT(fault_of(*lowered, donate) == "");
            RC_ASSERT(lowered->workspace_bytes == places.workspace_bytes);
            const Index stated = lowered->source_bytes + lowered->target_bytes + lowered->workspace_bytes;
            RC_ASSERT(stated <= verdict->footprint_bytes);
            most = std::max(most, stated);
        }
        const bool one_shape = divides(plan.source) && divides(plan.target);
        if (one_shape && same_devices(plan.source.mesh, plan.target.mesh)) RC_ASSERT(most == verdict->footprint_bytes);
        if (donate) {
            RC_CLASSIFY(places.workspace_bytes < assign_buffers(plan, capacities_of(plan, false)).workspace_bytes,
                        "donation helps");
        }
    }
}

TEST(PlacementProperty, WalksArePlacedAsWellAsCanBe) {
    check_property(cases(1500), [] { expect_placed(plan_of(*walks())); });
}

// A walk with a cast at some place. The judge refuses a cast that would reduce the narrower type.
TEST(PlacementProperty, WalksThatCastAreToo) {
    check_property(cases(1000), [] {
        const auto [from, to] =
            *rc::gen::element(std::pair(DType::f32, DType::bf16), std::pair(DType::bf16, DType::f32));
        Plan plan = plan_of(*walks());
        const auto place = *between<std::size_t>(0, plan.steps.size());
        plan.source.dtype = from;
        plan.target.dtype = to;
        for (std::size_t i = 0; i < plan.steps.size(); ++i) plan.steps[i].layout.dtype = i < place ? from : to;
        Layout behind = layout_before(plan, place);
        behind.dtype = to;
        plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(place), {StepKind::cast, behind});
        if (!check(plan)) return;
        RC_CLASSIFY(is_part_of_copy(plan, place), "part of a copy");
        expect_placed(plan);
    });
}

// Uneven tiles, two meshes, cuts of every kind.
TEST(PlacementProperty, PlansBetweenAnyLayoutsAreToo) {
    check_property(cases(400), [] {
        const std::string question = *questions(8);
        RC_LOG(question);
        const auto made = synthesize(problem_of(question), {.explain = true});
        RC_ASSERT(made.has_value());
        for (const Alternative& one : made->alternatives) expect_placed(one.plan());
    });
}

}  // namespace

}  // namespace reshard::test
