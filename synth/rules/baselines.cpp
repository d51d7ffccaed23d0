// Plans of other systems, as baselines for `explain`, the benchmarks and the tests.
#include "src/base/try.hpp"
#include "synth/rules/fuse_steps.hpp"

namespace reshard {

Result<Plan> gather_then_slice(const Problem& problem) {
    RESHARD_CHECK(same_array(problem.source, problem.target));
    if (!same_summands(problem.source, problem.target) && !problem.target.unreduced.empty())
        return fail(Code::unsupported, "gather, then slice has no step that makes an array unreduced");
    Plan plan{problem.source, problem.target, {}};
    Layout layout = problem.source;
    for (Dim& dim : layout.dims) dim = Dim(dim.extent);
    const auto step = [&](StepKind kind) {
        if (!equivalent(layout_before(plan, plan.steps.size()), layout)) plan.steps.push_back({kind, layout});
    };
    step(StepKind::all_gather);
    layout.unreduced = problem.target.unreduced;
    step(StepKind::all_reduce);
    layout.mesh = problem.target.mesh;
    step(StepKind::exchange);
    layout.dims = problem.target.dims;
    step(StepKind::slice);
    return plan;
}

}  // namespace reshard
