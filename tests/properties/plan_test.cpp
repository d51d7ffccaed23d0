// Plans as values. The judge accepts walks of typed steps with the right figures, and refuses everything else for the
// right reason. A plan survives its own text.
#include <algorithm>

#include "reshard/text.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/replay.hpp"

namespace reshard::test {
namespace {

TEST(PlanProperty, WalksAreJudgedAndCarriedOutRight) {
    check_property(cases(600), [] {
        const Walk walk = *walks();
        const Plan plan = plan_of(walk);
        const auto verdict = check(plan);
        if (!verdict) RC_LOG() << verdict.error().message;
        RC_ASSERT(verdict.has_value());
        for (std::size_t i = 0; i < plan.steps.size(); ++i)
            RC_ASSERT(verdict->moves[i] == *type_step(layout_before(plan, i), plan.steps[i]));
        RC_ASSERT(verdict->floor_bytes == std::max(tile_bytes(plan.source), tile_bytes(plan.target)));
        RC_ASSERT(replay(plan, *verdict) == "");
    });
}

TEST(PlanProperty, LimitsAreKeptToTheByte) {
    check_property(cases(300), [] {
        const Plan plan = plan_of(*walks());
        const auto verdict = check(plan);
        RC_ASSERT(verdict.has_value());
        Limits limits;
        limits.peak_bytes_max = verdict->peak_bytes;
        limits.memory.footprint_bytes_max = verdict->footprint_bytes;
        RC_ASSERT(check(plan, limits).has_value());
        limits.peak_bytes_max = verdict->peak_bytes - 1;
        const auto peak = check(plan, limits);
        RC_ASSERT(!peak.has_value());
        RC_ASSERT(peak.error().code == Code::infeasible);
        RC_ASSERT(peak.error().message.find("peak") != std::string::npos);
        limits = {.memory = {.footprint_bytes_max = verdict->footprint_bytes - 1}};
        const auto footprint = check(plan, limits);
        RC_ASSERT(!footprint && footprint.error().code == Code::infeasible);
        RC_ASSERT(footprint.error().message.find("footprint") != std::string::npos);
        // The plan then runs as one exchange or in pieces if that helps, and within the limit.
        const Execution execution = choose_execution(plan, {}, limits.memory);
        const auto otherwise = check(plan, execution, limits);
        RC_ASSERT(otherwise.has_value() == (execution != Execution(AsSteps{})));
        if (!otherwise) return;
        RC_ASSERT(otherwise->footprint_bytes < verdict->footprint_bytes);
        limits.memory.footprint_bytes_max = tile_bytes(plan.source) + tile_bytes(plan.target) - 1;
        RC_ASSERT(!check(plan, execution, limits).has_value());
    });
}

TEST(PlanProperty, BrokenTwinsAreRefusedForTheRightReason) {
    check_property(cases(1500), [] {
        const auto twin = *broken_plans();
        const auto verdict = check(twin.value);
        RC_ASSERT(!verdict.has_value());
        RC_LOG() << twin.invariant << " | " << verdict.error().message;
        RC_ASSERT(name(verdict.error().code) == name(twin.code));
        RC_ASSERT(verdict.error().message.find(twin.fragment) != std::string::npos);
    });
}

/// Another layout of the same array, by one small change.
Layout mutated(Layout layout) {
    const auto dims = layout.dims.size();
    std::vector<AtomList*> lists;
    for (Dim& dim : layout.dims) lists.push_back(&dim.atoms);
    AtomList& list = *lists[*between<std::size_t>(0, dims)];
    const AtomList rest = complement(used_atoms(layout), device_count(layout));
    switch (*between(0, 4)) {
        case 0:
            if (!list.empty()) list.pop_back();
            break;
        case 1:
            if (!rest.empty()) list.push_back(rest[*between<std::size_t>(0, rest.size())]);
            break;
        case 2:
            std::ranges::reverse(list);
            break;
        default:
            std::swap(list, *lists[*between<std::size_t>(0, dims)]);
    }
    list = canonical(list);
    return layout;
}

TEST(PlanProperty, MutatedPlansAreRefusedOrStillRight) {
    int accepted = 0;
    int refused = 0;
    check_property(cases(2000), [&] {
        const Walk walk = *rc::gen::suchThat(walks(), [](const Walk& drawn) { return !drawn.source.dims.empty(); });
        Plan plan = plan_of(walk);
        const auto which = *between<std::size_t>(0, plan.steps.size());
        switch (*between(0, 5)) {
            case 0:
                plan.steps[which].kind = all_step_kinds[*between<std::size_t>(0, all_step_kinds.size())];
                break;
            case 1:
                plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(which));
                break;
            case 2:
                std::swap(plan.steps[which], plan.steps.back());
                break;
            case 3:
                plan.source = mutated(plan.source);
                break;
            default:
                plan.steps[which].layout = mutated(plan.steps[which].layout);
        }
        const auto verdict = check(plan);
        verdict ? ++accepted : ++refused;
        RC_LOG() << format(plan);
        if (verdict) RC_ASSERT(replay(plan, *verdict) == "");
    });
    EXPECT_GT(accepted, cases(2000) / 50);
    EXPECT_GT(refused, cases(2000) / 50);
}

TEST(PlanProperty, TextSaysTheSameBothWays) {
    check_property(cases(1000), [] {
        const Plan plan = plan_of(*walks());
        const std::string text = format(plan);
        const auto parsed = parse_plan(text);
        if (!parsed) RC_LOG() << describe(parsed.error());
        RC_ASSERT(parsed.has_value());
        RC_ASSERT(*parsed == plan);
        RC_ASSERT(format(*parsed) == text);
        RC_ASSERT(fingerprint(*parsed) == fingerprint(plan));
    });
}

TEST(PlanProperty, FingerprintsDifferWherePlansDo) {
    check_property(cases(500), [] {
        const Walk walk = *rc::gen::suchThat(walks(), [](const Walk& drawn) { return !drawn.source.dims.empty(); });
        const Plan plan = plan_of(walk);
        Plan other = plan;
        other.source.dtype = DType::f64;
        RC_ASSERT(fingerprint(other) != fingerprint(plan));
        other = plan;
        other.steps.pop_back();
        RC_ASSERT(fingerprint(other) != fingerprint(plan));
        other = plan;
        other.source.dims[0].extent += 1;  // a plan has a single shape, so the source's shape decides
        RC_ASSERT(fingerprint(other) != fingerprint(plan));
        other = plan;
        other.steps[0].kind = other.steps[0].kind == StepKind::slice ? StepKind::exchange : StepKind::slice;
        RC_ASSERT(fingerprint(other) != fingerprint(plan));
    });
}

}  // namespace
}  // namespace reshard::test
