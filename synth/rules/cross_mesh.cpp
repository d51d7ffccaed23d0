#include "synth/rules/cross_mesh.hpp"

#include <algorithm>

#include "synth/rules/fetch_once.hpp"
#include "synth/search/refinement.hpp"

namespace reshard {

namespace {

const Layout& end_of(const Plan& plan) { return layout_before(plan, plan.steps.size()); }

void step_to(Plan& plan, StepKind kind, const Layout& layout) {
    if (!equivalent(end_of(plan), layout)) plan.steps.push_back({kind, layout});
}

void append(Dim& dim, Atom atom) {
    dim.atoms.push_back(atom);
    dim.atoms = canonical(std::move(dim.atoms));
}

// The source's unreduced atoms that are reduced before anything moves: all, unless the target has as many summands.
AtomList reduced_first(const Problem& problem) {
    const bool carried = summand_count(problem.source) == summand_count(problem.target);
    return carried ? AtomList{} : problem.source.unreduced;
}

// Each summand axis scatters a dimension that it splits; otherwise every device adds up its values. Reductions run
// inside a node first, so that less data leaves it.
void reduce(Plan& plan, const AtomList& reduced, const Machine& machine) {
    Layout layout = end_of(plan);
    for (const AtomList& primes : by_levels(layout, reduced, machine))
        for (const Atom& atom : primes) {
            layout.unreduced = *without(layout.unreduced, {atom}, device_count(layout));
            const auto place = place_for(layout, layout, atom);
            if (place) append(layout.dims[*place], atom);
            step_to(plan, place ? StepKind::reduce_scatter : StepKind::all_reduce, layout);
        }
}

// The target before its zero_fill.
Layout before_fill(const Problem& problem, const Layout& now) {
    Layout layout = problem.target;
    if (summand_count(now) != summand_count(layout)) layout.unreduced.clear();
    return layout;
}

std::optional<Plan> if_it_moves(Plan plan) {
    return plan.steps.empty() ? std::nullopt : std::optional(std::move(plan));
}

// An exchange to the last of the layouts that `scatters` makes of the target, then gathers.
template <class Scatters>
std::optional<Plan> exchange_plan(const Problem& problem, const Machine& machine, const Scatters& scatters) {
    Plan plan{problem.source, problem.target, {}};
    reduce(plan, reduced_first(problem), machine);
    const std::vector<Layout> layouts = scatters(before_fill(problem, end_of(plan)));
    step_to(plan, StepKind::exchange, layouts.back());
    gather_by_levels(plan.steps, layouts);
    step_to(plan, StepKind::zero_fill, problem.target);
    return if_it_moves(std::move(plan));
}

// The common part of both cuts from the major end on, as a cut of its own.
Dim common_cut(const Dim& a, const Dim& b) {
    if (a == b) return a;
    AtomList prefix = common_prefix(a.atoms, b.atoms);
    while (true) {
        const Index shards = combinations(prefix);
        const Dim one = coarsened(a, prefix, shard_count(a) / shards);
        const Dim other = coarsened(b, prefix, shard_count(b) / shards);
        if (one == other) return one;
        if (prefix.empty()) return Dim(a.extent);
        prefix.pop_back();
    }
}

// The cut of a target's dimension by its leading axes, as far as none of `unreduced` is among them.
Dim without_summands(const Layout& target, const Dim& dim, const AtomList& unreduced) {
    AtomList leading;
    for (const Atom& atom : split_into_primes(target.mesh, dim.atoms)) {
        if (!common_digits({atom}, unreduced).empty()) break;
        leading.push_back(atom);
    }
    leading = canonical(std::move(leading));
    return coarsened(dim, leading, shard_count(dim) / combinations(leading));
}

}  // namespace

std::optional<Problem> in_the_order_of_the_source(const Problem& problem) {
    if (same_order(problem.source.mesh, problem.target.mesh)) return std::nullopt;
    if (!same_devices(problem.source.mesh, problem.target.mesh)) return std::nullopt;
    Problem made = problem;
    made.target.mesh.devices = problem.source.mesh.devices;
    if (!check_enumerable(made.source, made.target)) return std::nullopt;
    return made;
}

Plan reordered(const Problem& problem, std::vector<Step> steps) {
    Plan plan{problem.source, problem.target, std::move(steps)};
    // On the way the same names as in the target's mesh stand for positions in the source's order.
    step_to(plan, StepKind::permute, problem.target);
    return plan;
}

std::optional<Problem> in_even_blocks(const Problem& problem) {
    if (!same_order(problem.source.mesh, problem.target.mesh)) return std::nullopt;
    if (!has_pieces(problem.source) && !has_pieces(problem.target)) return std::nullopt;
    Problem blocks = problem;
    for (Layout* end : {&blocks.source, &blocks.target})
        for (Dim& dim : end->dims) dim = Dim(dim.extent, std::move(dim.atoms));
    if (!validate(blocks.source) || !validate(blocks.target) || !check_enumerable(blocks.source, blocks.target))
        return std::nullopt;
    return blocks;
}

Plan between_pieces(const Problem& problem, const Problem& blocks, std::vector<Step> steps) {
    Plan plan{problem.source, problem.target, {}};
    step_to(plan, StepKind::exchange, blocks.source);
    plan.steps.insert(plan.steps.end(), steps.begin(), steps.end());
    step_to(plan, StepKind::exchange, problem.target);
    return plan;
}

bool searchable(const Problem& problem) {
    return same_order(problem.source.mesh, problem.target.mesh) && !has_pieces(problem.source) &&
           !has_pieces(problem.target);
}

std::optional<Plan> reduce_first(const Problem& problem, const Machine& machine) {
    return exchange_plan(problem, machine, [](const Layout& whole) { return std::vector<Layout>{whole}; });
}

std::optional<Plan> scatter_then_gather(const Problem& problem, const Machine& machine) {
    return exchange_plan(problem, machine, [](const Layout& whole) {
        std::vector<Layout> layouts = {whole,
                                       scattered(whole, whole, split_into_primes(whole.mesh, replicated(whole)))};
        if (equivalent(layouts[0], layouts[1])) layouts.pop_back();
        return layouts;
    });
}

std::optional<Plan> fetch_once_between(const Problem& problem, const Machine& machine, std::size_t level) {
    return exchange_plan(problem, machine,
                         [&](const Layout& whole) { return scattered_by_levels(whole, whole, machine, level); });
}

std::optional<Plan> reduce_last(const Problem& problem) {
    if (!same_order(problem.source.mesh, problem.target.mesh)) return std::nullopt;
    if (problem.source.unreduced.empty() || !problem.target.unreduced.empty()) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    Layout layout = problem.target;
    layout.unreduced = problem.source.unreduced;
    layout.reduction = problem.source.reduction;
    for (Dim& dim : layout.dims) dim = without_summands(problem.target, dim, layout.unreduced);
    step_to(plan, StepKind::exchange, layout);
    AtomList scattered;
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        const auto suffix = after_prefix(problem.target.dims[i].atoms, layout.dims[i].atoms);
        if (suffix) scattered.insert(scattered.end(), suffix->begin(), suffix->end());
        layout.dims[i] = problem.target.dims[i];
    }
    const auto rest = without(layout.unreduced, as_set(std::move(scattered)), device_count(layout));
    if (!rest) return std::nullopt;
    layout.unreduced = *rest;
    step_to(plan, StepKind::reduce_scatter, layout);
    step_to(plan, StepKind::all_reduce, problem.target);
    return if_it_moves(std::move(plan));
}

std::optional<Plan> gather_differing(const Problem& problem) {
    if (!same_order(problem.source.mesh, problem.target.mesh)) return std::nullopt;
    if (problem.source.unreduced != problem.target.unreduced) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    Layout gathered = problem.source;
    for (std::size_t i = 0; i < gathered.dims.size(); ++i)
        gathered.dims[i] = common_cut(problem.source.dims[i], problem.target.dims[i]);
    step_to(plan, StepKind::all_gather, gathered);
    step_to(plan, StepKind::slice, problem.target);
    return if_it_moves(std::move(plan));
}

}  // namespace reshard
