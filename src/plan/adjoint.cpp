#include "reshard/planner/adjoint.hpp"

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {

namespace {

StepKind twin(StepKind kind) {
    switch (kind) {
        case StepKind::slice:
            return StepKind::zero_fill;
        case StepKind::all_gather:
            return StepKind::reduce_scatter;
        case StepKind::reduce_scatter:
            return StepKind::all_gather;
        case StepKind::all_to_all:
        case StepKind::permute:
        case StepKind::all_reduce:
        case StepKind::zero_fill:
        case StepKind::exchange:
        case StepKind::view:
        case StepKind::cast:
            return kind;
    }
    return kind;
}

// Appends a step to the plan, if one of these kinds leads there.
bool append(std::vector<Step>& steps, const Layout& from, const Layout& to, std::initializer_list<StepKind> kinds) {
    if (equivalent(from, to)) return true;
    for (const StepKind kind : kinds) {
        Step step{kind, to};
        if (!type_step(from, step)) continue;
        steps.push_back(std::move(step));
        return true;
    }
    return false;
}

// Goes back by the twin. A step that has no twin adds up all summands, moves, and fills with zeros.
Result<void> step_back(std::vector<Step>& steps, const Layout& from, StepKind kind, const Layout& to) {
    if (append(steps, from, to, {twin(kind), StepKind::slice})) return {};
    Layout summed = from;
    summed.unreduced.clear();
    Layout moved = to;
    moved.unreduced.clear();
    const bool goes = append(steps, from, summed, {StepKind::all_reduce}) &&
                      append(steps, summed, moved, {StepKind::slice, StepKind::exchange}) &&
                      append(steps, moved, to, {StepKind::zero_fill});
    if (goes) return {};
    return fail(Code::unsupported,
                fmt::format("a step {} has no adjoint: nothing moves its gradient back", name(kind)));
}

}  // namespace

Result<Layout> dual(const Layout& layout) {
    Layout made = layout;
    made.unreduced = complement(used_atoms(layout), device_count(layout));
    made.reduction = Reduction::sum;
    made.summed = 1;
    if (!layout.unreduced.empty() && layout.reduction != Reduction::sum)
        return fail(Code::unsupported,
                    fmt::format("summands that combine by {} have no adjoint; sums have", name(layout.reduction)));
    RESHARD_CHECK(validate(made));
    return made;
}

Result<Plan> adjoint(const Plan& plan) {
    Plan back;
    RESHARD_ASSIGN(back.source, dual(plan.target));
    RESHARD_ASSIGN(back.target, dual(plan.source));
    Layout from = back.source;
    for (std::size_t i = plan.steps.size(); i-- > 0;) {
        RESHARD_TRY(auto& to, dual(layout_before(plan, i)));
        RESHARD_CHECK(step_back(back.steps, from, plan.steps[i].kind, to));
        from = std::move(to);
    }
    return back;
}

}  // namespace reshard
