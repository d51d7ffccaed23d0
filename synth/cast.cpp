#include "synth/cast.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"
#include "synth/candidates.hpp"

namespace reshard {

namespace {

Layout of_type(Layout layout, DType dtype) {
    layout.dtype = dtype;
    return layout;
}

// The question is planned in this type.
Result<DType> planned_type(const Problem& problem, const Options& options) {
    const DType from = problem.source.dtype;
    const DType to = problem.target.dtype;
    if (!options.cast)
        return fail(Code::mismatch,
                    fmt::format("element types differ: {} and {}; a move casts if the option cast is on", name(from),
                                name(to)));
    if (!tables::can_cast(from, to))
        return fail(Code::unsupported,
                    fmt::format("{} is not cast to {}: a float becomes any float, and an integer becomes a type that "
                                "holds all of its values",
                                name(from), name(to)));
    if (problem.source.unreduced.empty()) return size_of(to) < size_of(from) ? to : from;
    if (tables::holds_all(to, from)) return to;
    if (!problem.target.unreduced.empty())
        return fail(Code::unsupported, fmt::format("summands of {} do not become summands of {}: sums are reduced in "
                                                   "the wider type",
                                                   name(from), name(to)));
    if (tables::holds_all(from, to)) return from;
    return fail(
        Code::unsupported,
        fmt::format("sums of {} do not become {}: neither type holds all values of the other", name(from), name(to)));
}

// The plan with a cast before step `place`. pre: the plan is in one type.
Plan cast_at(const Plan& plan, std::size_t place, DType from, DType to) {
    Plan made = plan;
    made.source.dtype = from;
    made.target.dtype = to;
    for (std::size_t i = 0; i < made.steps.size(); ++i) made.steps[i].layout.dtype = i < place ? from : to;
    const Step cast{StepKind::cast, of_type(layout_before(plan, place), to)};
    made.steps.insert(made.steps.begin() + static_cast<std::ptrdiff_t>(place), cast);
    return made;
}

void propose(const Synthesis& made, const Problem& problem, Candidates& candidates) {
    const auto all_places = [&](const std::string& rule, const Plan& plan) {
        for (std::size_t place = 0; place <= plan.steps.size(); ++place)
            candidates.judge(rule, cast_at(plan, place, problem.source.dtype, problem.target.dtype));
    };
    all_places(made.rule, made.plan());
    for (const Alternative& other : made.alternatives) all_places(other.rule, other.plan());
}

}  // namespace

Result<Synthesis> with_cast(const Problem& problem, const Options& options) {
    RESHARD_TRY(const DType type, planned_type(problem, options));
    if (!options.first_steps.empty())
        return fail(Code::unsupported, "first steps are for a question in one element type, and this one casts");
    const Problem in_one_type{of_type(problem.source, type), of_type(problem.target, type)};
    const Index least_peak = std::max(tile_bytes(in_one_type.source), tile_bytes(in_one_type.target));
    Options each = options;
    RESHARD_TRY(auto& made, synthesize(in_one_type, each));
    Candidates candidates(problem, options, least_peak);
    propose(made, problem, candidates);
    if (candidates.best() == nullptr && !options.explain) {  // the cast takes memory that another plan leaves
        each.explain = true;
        RESHARD_TRY(const auto& all, synthesize(in_one_type, each));
        propose(all, problem, candidates);
    }
    const Alternative* best = candidates.best();
    if (best == nullptr) return tl::unexpected(candidates.no_plan());
    RESHARD_TRY(const auto& judged, within(*best, options.limits));
    // The search priced no cast, so only what it moves is known to be least.
    const bool complete =
        made.search_complete && options.objective != Objective::time && problem.source.unreduced.empty();
    static_cast<Judged<Plan>&>(made) = judged;
    made.picoseconds = best->picoseconds;
    made.rule = best->rule;
    made.optimal = at_bound(*best);
    made.search_complete = complete || unbeatable(*best, options.objective);
    made.alternatives.clear();
    if (options.explain) made.alternatives = candidates.take_all();
    return made;
}

}  // namespace reshard
