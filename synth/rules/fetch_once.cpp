#include "synth/rules/fetch_once.hpp"

#include <algorithm>

#include "synth/rules/three_stage.hpp"
#include "synth/search/refinement.hpp"

namespace reshard {

namespace {

bool splits(const Dim& dim, Index prime) {
    const Index tile = tile_extent(dim);
    return dim.pieces.empty() && tile > 0 && tile % prime == 0;
}

bool uses(const Dim& dim, Atom atom) {
    return std::ranges::any_of(dim.atoms, [&](Atom one) {
        return one.stride <= atom.stride && atom.stride * atom.size <= one.stride * one.size;
    });
}

}  // namespace

std::optional<std::size_t> place_for(const Layout& layout, const Layout& source, Atom atom) {
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        if (!splits(layout.dims[i], atom.size)) continue;
        if (uses(source.dims[i], atom)) return i;
        if (!place || tile_extent(layout.dims[i]) > tile_extent(layout.dims[*place])) place = i;
    }
    return place;
}

Layout scattered(const Layout& target, const Layout& source, Index inside) {
    Layout layout = target;
    const AtomList replicated = complement(used_atoms(target), device_count(target));
    for (const Atom& atom : split_into_primes(target.mesh, replicated)) {
        if (atom.stride >= inside) continue;
        const auto place = place_for(layout, source, atom);
        if (!place) continue;
        AtomList& atoms = layout.dims[*place].atoms;
        atoms.push_back(atom);
        atoms = canonical(std::move(atoms));
    }
    return layout;
}

std::optional<Plan> fetch_once(const Problem& problem, Vocabulary vocabulary, Index inside) {
    if (!same_summands(problem.source, problem.target)) return std::nullopt;
    const Layout apart = scattered(problem.target, problem.source, inside);
    if (same_tiles(apart, problem.target)) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    if (!same_tiles(problem.source, apart)) {
        if (vocabulary == Vocabulary::all)
            plan.steps.push_back({StepKind::exchange, apart});
        else
            plan.steps = three_stage({problem.source, apart}, vocabulary, index_max).steps;
    }
    plan.steps.push_back({StepKind::all_gather, problem.target});
    return plan;
}

}  // namespace reshard
