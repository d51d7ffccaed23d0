#include "synth/rules/fuse_steps.hpp"

#include <algorithm>

namespace reshard {

StepCost operator+(const StepCost& a, const StepCost& b) {
    return {saturating_add(a.first, b.first), saturating_add(a.second, b.second), saturating_add(a.third, b.third)};
}

StepCost price_of(const Layout& before, const Step& step, const Move& move, const Options& options) {
    const Index time = step_picoseconds(before, step, move, options.machine);
    const Index moves = is_local(step.kind) ? 0 : 1;
    switch (options.objective) {
        case Objective::time:
            return {time, moves, move.received};
        case Objective::bytes:
            return {move.received, moves, time};
        case Objective::steps:
            break;
    }
    return {moves, move.received, time};
}

namespace {

constexpr std::size_t run_max = 12;

struct Leg {
    StepCost price{};
    std::size_t from = 0;
    Index legs = 0;
    StepKind kind = StepKind::slice;
    bool reached = false;
};

// A quick test of a step by shards and summands, before the typing rule, which takes longer.
struct Change {
    bool grows = false;    // some dimension has more shards
    bool shrinks = false;  // some has fewer
    bool axes = false;     // the unreduced axes are others
    bool sums = false;     // or what they are reduced by
    bool shape = false;    // the array has another shape; then nothing else is known
};

Change change_between(const Layout& before, const Layout& after) {
    Change change;
    change.shape = shape(before) != shape(after);
    if (change.shape) return change;
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        const Index b = shard_count(before.dims[i]);
        const Index a = shard_count(after.dims[i]);
        change.grows = change.grows || a > b;
        change.shrinks = change.shrinks || a < b;
    }
    change.axes = before.unreduced != after.unreduced;
    change.sums = !same_summands(before, after);
    return change;
}

// False where no step of the kind is typed.
bool can_be(StepKind kind, Change change) {
    if (change.shape) return kind == StepKind::view;
    switch (kind) {
        case StepKind::slice:
            return !change.shrinks && !change.axes;
        case StepKind::all_gather:
            return !change.grows && !change.axes;
        case StepKind::all_to_all:
            return change.grows && change.shrinks && !change.axes;
        case StepKind::permute:
            return !change.grows && !change.shrinks;
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
        case StepKind::zero_fill:
            return change.sums;
        case StepKind::view:
        case StepKind::cast:
            return false;
        case StepKind::exchange:
            break;
    }
    return true;
}

}  // namespace

Plan shortcut(Plan plan, const Options& options) {
    const std::size_t count = plan.steps.size();
    if (count < 2) return plan;
    for (const Step& step : plan.steps)
        if (!validate(step.layout) ||
            (shape(step.layout) == shape(plan.source) && !check_enumerable(plan.source, step.layout)))
            return plan;  // the judge will say why
    std::vector<Leg> legs(count + 1);
    legs[0].reached = true;
    for (std::size_t to = 1; to <= count; ++to) {
        const Layout& after = plan.steps[to - 1].layout;
        for (std::size_t from = to > run_max ? to - run_max : 0; from < to; ++from) {
            if (!legs[from].reached) continue;
            const Layout& before = layout_before(plan, from);
            if (equivalent(before, after)) {
                // A detour: nothing to do between the two.
                Leg back = legs[from];
                if (!legs[to].reached || std::tie(back.price, back.legs) < std::tie(legs[to].price, legs[to].legs)) {
                    back.reached = true;
                    legs[to] = back;
                }
                continue;
            }
            const Change change = change_between(before, after);
            Step step{StepKind::slice, after};
            for (const StepKind kind : all_step_kinds) {
                if (!allows(options.vocabulary, kind) || !can_be(kind, change)) continue;
                step.kind = kind;
                const auto move = type_valid_step(before, step);
                if (!move) continue;
                const Leg leg{legs[from].price + price_of(before, step, *move, options), from, legs[from].legs + 1,
                              kind, true};
                if (!legs[to].reached || std::tie(leg.price, leg.legs) < std::tie(legs[to].price, legs[to].legs))
                    legs[to] = leg;
            }
        }
    }
    if (!legs[count].reached) return plan;  // some step is not typed: the judge will say so
    std::vector<Step> steps;
    for (std::size_t at = count; at != 0;) {
        const Leg& leg = legs[at];
        if (leg.legs == 0) break;
        // A detour ends where its layout was reached first; the layout itself is the same.
        steps.push_back({leg.kind, plan.steps[at - 1].layout});
        at = leg.from;
    }
    std::ranges::reverse(steps);
    plan.steps = std::move(steps);
    return plan;
}

}  // namespace reshard
