// A view changes the shape of the array while steps run, and nothing else.
#include "support/views.hpp"
#include "reshard/emit/interpret.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"
#include "src/plan/buffer_assignment.hpp"
#include "src/plan/split_run.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/replay.hpp"
#include "synth/rules/views.hpp"

namespace reshard::test {
namespace {

// A walk, and the same walk with views.
std::pair<Plan, Plan> drawn_plans() {
    const Plan plan = plan_of(*walks());
    const Plan seen = with_views(plan, *rc::gen::arbitrary<std::uint64_t>());
    RC_LOG() << format(seen);
    return {plan, seen};
}

TEST(ViewProperty, PlansWithViewsArriveAndCostTheSame) {
    int viewed = 0;
    check_property(cases(1500), [&] {
        const auto [plan, seen] = drawn_plans();
        auto before = check(plan);
        auto after = check(seen);
        RC_ASSERT(before.has_value());
        if (!after) RC_LOG() << after.error().message;
        RC_ASSERT(after.has_value());
        RC_ASSERT(replay(seen, *after) == "");
        std::erase_if(before->moves, [](const Move& move) { return move == Move{}; });
        std::erase_if(after->moves, [](const Move& move) { return move == Move{}; });
        RC_ASSERT(after->moves.size() == before->moves.size());
        RC_ASSERT(after->received_bytes == before->received_bytes);
        RC_ASSERT(after->received_bytes_max_device == before->received_bytes_max_device);
        RC_ASSERT(after->peak_bytes == before->peak_bytes);
        RC_ASSERT(after->lower_bound_bytes == before->lower_bound_bytes);
        viewed += plan == seen ? 0 : 1;
    });
    EXPECT_GT(viewed, cases(300));
}

// A view that follows a slice makes it a copy. Other views need no memory.
TEST(ViewProperty, ViewsNeedNoMemory) {
    check_property(cases(800), [] {
        const auto [plan, seen] = drawn_plans();
        for (std::size_t i = 0; i + 1 < seen.steps.size(); ++i)
            RC_PRE(seen.steps[i].kind != StepKind::slice || seen.steps[i + 1].kind != StepKind::view);
        for (const bool donate : {false, true})
            RC_ASSERT(assign_buffers(seen, capacities_of(seen, donate)).workspace_bytes ==
                      assign_buffers(plan, capacities_of(plan, donate)).workspace_bytes);
    });
}

// The pieces of a plan with views are the pieces of the plan without.
TEST(ViewProperty, PiecesAreCutInTheShapeOfTheEnds) {
    int cut = 0;
    check_property(cases(800), [&] {
        const auto [plan, seen] = drawn_plans();
        const auto blocks = common_blocks(seen, index_max);
        if (!blocks) return;
        const Split split = even_pieces(blocks->dim, blocks->block, 2);
        RC_ASSERT(can_split(plan, split).has_value());
        RC_ASSERT(can_split(seen, split).has_value());
        for (std::size_t piece = 0; piece < 2; ++piece) {
            const Plan part = plan_of_piece(seen, split, piece);
            const auto verdict = check(part);
            if (!verdict) RC_LOG() << verdict.error().message << format(part);
            RC_ASSERT(verdict.has_value());
            RC_ASSERT(verdict->received_bytes == check(plan_of_piece(plan, split, piece))->received_bytes);
            RC_ASSERT(part.source == plan_of_piece(plan, split, piece).source);
        }
        cut += seen == plan ? 0 : 1;
    });
    EXPECT_GT(cut, cases(800) / 20);
}

TEST(ViewProperty, TextAndFingerprintsKeepViews) {
    check_property(cases(400), [] {
        const auto [plan, seen] = drawn_plans();
        RC_PRE(seen != plan);
        RC_ASSERT(*parse_plan(format(seen)) == seen);
        RC_ASSERT(fingerprint(seen) != fingerprint(plan));
    });
}

// Views that lead back are dropped, and two in a row become one.
TEST(ViewProperty, ViewsInARowAreMerged) {
    check_property(cases(400), [] {
        const auto [plan, seen] = drawn_plans();
        Plan merged = seen;
        merge_views(merged);
        RC_ASSERT(check(merged).has_value());
        const Plan other = with_views({plan.target, plan.target, {}}, *rc::gen::arbitrary<std::uint64_t>());
        Plan twice = seen;
        twice.steps.insert(twice.steps.end(), other.steps.begin(), other.steps.end());
        merge_views(twice);
        RC_ASSERT(twice == merged);
    });
}

}  // namespace
}  // namespace reshard::test
