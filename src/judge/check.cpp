#include "reshard/check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/judge/execution.hpp"
#include "src/judge/live_bytes.hpp"
#include "src/plan/split_run.hpp"
#include "src/price/carried.hpp"
#include "src/tables/dtypes.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

/// Up to here the busiest device is found by adding up every device; beyond it the sum over steps stands for it.
constexpr Index totaled_devices_max = 4096;

// `sum` and the result are bytes.
Index busiest_receiver(const Plan& plan, const std::vector<Move>& moves, Index sum) {
    const auto varies = [](const Move& move) { return !move.uniform && move.received > 0; };
    const Index devices = world_size(plan);
    const bool one_mesh = std::ranges::all_of(
        plan.steps, [&](const Step& step) { return same_devices(step.layout.mesh, plan.source.mesh); });
    if ((one_mesh && std::ranges::count_if(moves, varies) <= 1) || devices > totaled_devices_max) return sum;
    Index most = 0;
    for (Index device = 0; device < devices && most < sum; ++device) {
        Index total = 0;
        for (std::size_t i = 0; i < moves.size(); ++i)
            total = saturating_add(
                total, saturating_multiply(received_by(device, layout_before(plan, i), plan.steps[i], moves[i]),
                                           size_of(layout_before(plan, i).dtype)));
        most = std::max(most, total);
    }
    return most;
}

Result<void> keep_limits(const Plan& plan, const Verdict& verdict, const Limits& limits) {
    const auto over = [](std::string_view what, Index needed, Index limit, Index floor) {
        return fail(Code::infeasible,
                    fmt::format("{}: needs {} a device, limit is {}; no plan needs less than {}", what,
                                format_bytes(needed), format_bytes(limit), format_bytes(floor)));
    };
    if (limits.peak_bytes_max && verdict.peak_bytes > *limits.peak_bytes_max)
        return over("peak", verdict.peak_bytes, *limits.peak_bytes_max, verdict.floor_bytes);
    const MemoryPolicy& memory = limits.memory;
    const Index needed = saturating_add(verdict.footprint_bytes, memory.staging_bytes);
    if (memory.footprint_bytes_max && needed > *memory.footprint_bytes_max)
        return over("footprint", needed, *memory.footprint_bytes_max,
                    saturating_add(full_ends(plan), memory.staging_bytes));
    return {};
}

// A plan between two element types casts once, and reduces in the wider type.
Result<void> check_types(const Plan& plan) {
    const DType from = plan.source.dtype;
    const DType to = plan.target.dtype;
    const auto casts = std::ranges::count_if(plan.steps, [](const Step& step) { return step.kind == StepKind::cast; });
    if (casts == 0) return same_array(plan.source, plan.target);
    if (casts != 1) return fail(Code::plan, fmt::format("from {} to {} with {} casts", name(from), name(to), casts));
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Layout& before = layout_before(plan, i);
        const DType other = before.dtype == from ? to : from;
        if (reduces(plan.steps[i].kind) && !tables::holds_all(before.dtype, other))
            return fail(Code::plan,
                        fmt::format("step {}: reduces {}, not the wider {}", i + 1, name(before.dtype), name(other)));
    }
    return {};
}

Result<void> same_shape(const Layout& source, Layout target) {
    target.dtype = source.dtype;
    return same_array(source, target);
}

// The steps, whatever is held while they run.
Result<Verdict> judge_steps(const Plan& plan) {
    for (const Layout* end : {&plan.source, &plan.target}) RESHARD_CHECK(validate(*end));
    RESHARD_CHECK(validate(plan.network));
    RESHARD_CHECK(same_shape(plan.source, plan.target));
    RESHARD_CHECK(check_types(plan));
    RESHARD_CHECK(check_enumerable(plan.source, plan.target));
    Verdict verdict;
    verdict.floor_bytes = std::max(tile_bytes(plan.source), tile_bytes(plan.target));
    verdict.peak_bytes = verdict.floor_bytes;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const auto move = type_step(layout_before(plan, i), plan.steps[i]);
        if (!move) return fail(move.error().code, fmt::format("step {}: {}", i + 1, move.error().message));
        verdict.moves.push_back(*move);
        verdict.peak_bytes = std::max(verdict.peak_bytes, tile_bytes(plan.steps[i].layout));
        const Index element = size_of(layout_before(plan, i).dtype);
        const auto add = [&](Index& sum, Index elements) {
            sum = saturating_add(sum, saturating_multiply(elements, element));
        };
        add(verdict.received_bytes, move->received);
        add(verdict.sent_bytes_max_device, sent_at_most(layout_before(plan, i), plan.steps[i], *move, plan.network));
    }
    if (!equivalent(layout_before(plan, plan.steps.size()), plan.target))
        return fail(Code::plan, fmt::format("the plan ends at {}, not at its target {}",
                                            format(layout_before(plan, plan.steps.size())), format(plan.target)));
    verdict.received_bytes_max_device = busiest_receiver(plan, verdict.moves, verdict.received_bytes);
    const Index narrower = std::min(size_of(plan.source.dtype), size_of(plan.target.dtype));
    verdict.lower_bound_bytes = saturating_multiply(lower_bound(plan.source, plan.target), narrower);
    return verdict;
}

}  // namespace

Result<Verdict> check(const Plan& plan, const Execution& execution, const Limits& limits) {
    auto verdict = judge_steps(plan);
    if (!verdict) return verdict;
    if (std::holds_alternative<AsOneExchange>(execution)) {
        const auto exchange = as_one_exchange(plan);
        if (!exchange) return fail(Code::plan, "the plan is no exchange as a whole: it reduces or fills");
        if (*exchange != plan) verdict = judge_steps(*exchange);
        if (!verdict) return verdict;
    }
    if (const Split* split = std::get_if<Split>(&execution)) {
        RESHARD_CHECK(can_split(plan, *split));
    }
    verdict->footprint_bytes = saturating_add(full_ends(plan), workspace_bytes(plan, execution, limits.memory.donate));
    RESHARD_CHECK(keep_limits(plan, *verdict, limits));
    return verdict;
}

Result<Verdict> check(const Plan& plan, const Limits& limits) { return check(plan, AsSteps{}, limits); }

Result<Judged<Plan>> judge(Plan plan, const Execution& execution, const Limits& limits) {
    RESHARD_TRY(auto& verdict, check(plan, execution, limits));
    return Judged<Plan>({std::move(plan), execution, std::move(verdict)}, limits);
}

Result<Judged<Plan>> judge(Plan plan, const Capabilities& capabilities, const Limits& limits) {
    const Execution execution = choose_execution(plan, capabilities, limits.memory);
    return judge(std::move(plan), execution, limits);
}

Result<Judged<Plan>> within(const Judged<Plan>& judged, const Limits& limits) {
    if (limits.memory.donate != judged.limits().memory.donate) return judge(judged.plan(), judged.execution(), limits);
    RESHARD_CHECK(keep_limits(judged.plan(), judged.verdict(), limits));
    Judged<Plan> same = judged;
    same.limits_ = limits;
    return same;
}

}  // namespace reshard
