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

// A zero_fill of a suffix goes back by a slice. A permute of tiles with copies goes back by an exchange.
Result<Step> step_back(const Layout& from, StepKind kind, const Layout& to) {
    for (const StepKind way : {twin(kind), StepKind::slice, StepKind::exchange})
        if (Step step{way, to}; type_step(from, step)) return step;
    return fail(Code::unsupported, fmt::format("a step {} has no adjoint: nothing moves its gradient back", name(kind)));
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
        RESHARD_TRY(auto& step, step_back(from, plan.steps[i].kind, to));
        back.steps.push_back(std::move(step));
        from = std::move(to);
    }
    return back;
}

}  // namespace reshard
