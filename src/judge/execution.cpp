#include "src/judge/execution.hpp"

#include <algorithm>

#include "reshard/check.hpp"
#include "src/base/hash.hpp"
#include "src/judge/live_bytes.hpp"
#include "src/plan/buffer_assignment.hpp"
#include "src/plan/split_run.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

std::string_view name(const Execution& execution) {
    constexpr std::array<std::string_view, 3> names = {"steps", "one_exchange", "split"};
    return names[execution.index()];
}

Index piece_count(const Execution& execution) {
    const Split* split = std::get_if<Split>(&execution);
    return split == nullptr ? 1 : std::ssize(split->ends);
}

bool overlaps(const Execution& execution) {
    const Split* split = std::get_if<Split>(&execution);
    return split != nullptr && split->overlapped && split->ends.size() > 1;
}

std::optional<Plan> as_one_exchange(const Plan& plan) {
    const bool moves = std::ranges::none_of(plan.steps, [](const Step& step) { return changes_summands(step.kind); });
    Step whole{StepKind::exchange, plan.target};
    if (!moves || !type_step(plan.source, whole)) return std::nullopt;
    return Plan{plan.source, plan.target, {std::move(whole)}, plan.network};
}

Index workspace_room(const MemoryPolicy& memory, Index held) {
    if (!memory.footprint_bytes_max) return index_max;
    const Index limit = std::max<Index>(*memory.footprint_bytes_max, 0);
    return limit - std::min(limit, saturating_add(held, memory.staging_bytes));
}

Index workspace_bytes(const Plan& plan, const Execution& execution, bool donate) {
    if (std::holds_alternative<AsOneExchange>(execution)) return 0;
    if (const Split* split = std::get_if<Split>(&execution)) {
        if (!keeps_blocks(*split, plan)) return 0;  // one step, from end to end
        const Index of_one = assign_buffers(plan_of(plan, *split, largest_extent(*split)), {}).workspace_bytes;
        return saturating_multiply(of_one, split->overlapped && split->ends.size() > 1 ? 2 : 1);
    }
    return assign_buffers(plan, capacities_of(plan, donate)).workspace_bytes;
}

Execution choose_within(const Plan& plan, const Capabilities& capabilities, Index workspace_bytes_max, bool donate,
                        Vocabulary vocabulary) {
    const bool fits =
        workspace_bytes_max == index_max || workspace_bytes(plan, AsSteps{}, donate) <= workspace_bytes_max;
    // A plan of one step of another kind is as good as the exchange.
    const bool worth = plan.steps.size() > 1 || (plan.steps.size() == 1 && plan.steps[0].kind == StepKind::exchange);
    if (worth && vocabulary == Vocabulary::all && (capabilities.one_exchange || !fits) && as_one_exchange(plan))
        return AsOneExchange{};
    if (fits) return AsSteps{};
    if (const auto split = split_within(plan, workspace_bytes_max)) return *split;
    return AsSteps{};
}

Execution choose_execution(const Plan& plan, const Capabilities& capabilities, const MemoryPolicy& memory,
                           Vocabulary vocabulary) {
    if (!capabilities.one_exchange && !memory.footprint_bytes_max) return AsSteps{};
    if (!check(plan)) return AsSteps{};
    return choose_within(plan, capabilities, workspace_room(memory, full_ends(plan)), memory.donate, vocabulary);
}

void mix(std::uint64_t& fingerprint, const MemoryPolicy& memory) {
    if (memory == MemoryPolicy{}) return;
    for (const Index word :
         {memory.footprint_bytes_max.value_or(-1), Index{memory.donate ? 1 : 0}, memory.staging_bytes})
        mix(fingerprint, static_cast<std::uint64_t>(word));
}

std::uint64_t fingerprint(const Plan& plan, const Execution& execution, const MemoryPolicy& memory) {
    std::uint64_t all = fingerprint(plan);
    if (!std::holds_alternative<AsSteps>(execution)) mix(all, execution.index());
    if (const Split* split = std::get_if<Split>(&execution)) {
        mix(all, split->dim);
        mix(all, static_cast<std::uint64_t>(split->block));
        mix(all, split->ends.size());
        for (const Index end : split->ends) mix(all, static_cast<std::uint64_t>(end));
        mix(all, split->overlapped ? 1 : 0);
        for (std::size_t place = 0; place < split->ends.size(); ++place) mix(all, piece_at(*split, place));
    }
    mix(all, memory);
    return all;
}

}  // namespace reshard
