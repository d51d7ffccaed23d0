#include "synth/rules/renumber.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/refinement.hpp"
#include "synth/rules/three_stage.hpp"

namespace reshard {

namespace {

// Several axes of more primes than one: one axis in their place can be cut at other borders.
bool gains_digits(const Dim& dim) {
    const std::vector<Index> primes = prime_factors(shard_count(dim));
    return dim.atoms.size() > 1 && primes.front() != primes.back();
}

bool plain(const Layout& layout) { return layout.unreduced.empty() && divides(layout); }

// The same tiles on the same devices, on a mesh of one axis for each dimension and one for idle devices.
Layout renumbered(const Layout& layout) {
    const AtomList idle = complement(used_atoms(layout), device_count(layout));
    std::vector<AtomList> parts;
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        parts.push_back(layout.dims[i].atoms);
        axes.push_back({fmt::format("d{}", i), shard_count(layout.dims[i])});
    }
    parts.push_back(idle);
    axes.push_back({"idle", combinations(idle)});
    // Position by position, the last axis minor.
    std::vector<Index> positions = {0};
    for (const AtomList& atoms : parts)
        for (const Atom& atom : atoms) {
            std::vector<Index> longer;
            longer.reserve(positions.size() * static_cast<std::size_t>(atom.size));
            for (const Index position : positions)
                for (Index k = 0; k < atom.size; ++k) longer.push_back(position + k * atom.stride);
            positions = std::move(longer);
        }
    for (Index& position : positions) position = device_at(layout.mesh, position);
    Layout made = layout;
    made.mesh = Mesh(std::move(axes), DeviceList(std::move(positions)));
    Index stride = device_count(layout);
    for (Dim& dim : made.dims) {
        const Index shards = shard_count(dim);
        stride /= shards;
        dim.atoms = canonical({{shards, stride}});
    }
    return made;
}

// `like` in as many shards of each dimension as `shape`: the digits that it has stay, others are any that are idle.
std::optional<Layout> in_shape_of(const Layout& shape, Layout like) {
    AtomList idle = complement(used_atoms(like), device_count(like));
    for (std::size_t i = 0; i < shape.dims.size(); ++i) {
        Dim& dim = like.dims[i];
        if (shard_count(shape.dims[i]) % shard_count(dim) != 0) return std::nullopt;
        for (const Index prime : prime_factors(shard_count(shape.dims[i]) / shard_count(dim))) {
            const auto free = std::ranges::find_if(idle, [&](Atom atom) { return atom.size % prime == 0; });
            if (free == idle.end()) return std::nullopt;
            // The minor end of the idle axis.
            dim.atoms.push_back({prime, free->stride});
            *free = {free->size / prime, free->stride * prime};
        }
        dim.atoms = canonical(std::move(dim.atoms));
    }
    return like;
}

}  // namespace

std::optional<Plan> renumbered_to_target(const Problem& problem) {
    const auto& [source, target] = problem;
    if (!plain(source) || !plain(target) || device_count(target) > renumbered_devices_max) return std::nullopt;
    if (std::ranges::none_of(target.dims, gains_digits)) return std::nullopt;
    const Layout goal = renumbered(target);
    Layout bare = goal;
    for (Dim& dim : bare.dims) dim.atoms.clear();
    const auto start = in_shape_of(source, bare);
    if (!start) return std::nullopt;
    const std::vector<Step> steps = three_stage({*start, goal}, Vocabulary::collectives, 0).steps;
    // The permute decides which device has each tile, so slices and permutes before it can go.
    auto next = steps.begin();
    const Layout* entry = &*start;
    Plan plan{source, target, {}};
    if (next != steps.end() && next->kind == StepKind::slice) {
        auto sliced = in_shape_of(next->layout, source);
        if (!sliced) return std::nullopt;
        plan.steps.push_back({StepKind::slice, std::move(*sliced)});
        entry = &next++->layout;
    }
    if (next != steps.end() && next->kind == StepKind::permute) entry = &next++->layout;
    plan.steps.push_back({StepKind::permute, *entry});
    plan.steps.insert(plan.steps.end(), next, steps.end());
    plan.steps.push_back({StepKind::permute, target});  // the same tiles by their own names: nothing moves
    return plan;
}

std::optional<Plan> renumbered_to_source(const Problem& problem) {
    const auto back = renumbered_to_target({problem.target, problem.source});
    if (!back) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    for (std::size_t i = back->steps.size(); i-- > 0;) {
        const StepKind kind = back->steps[i].kind;
        const StepKind undone = kind == StepKind::slice        ? StepKind::all_gather
                                : kind == StepKind::all_gather ? StepKind::slice
                                                               : kind;
        plan.steps.push_back({undone, layout_before(*back, i)});
    }
    return plan;
}

}  // namespace reshard
