#include "synth/fetch_once.hpp"

#include <algorithm>

#include "synth/digits.hpp"
#include "synth/three_stage.hpp"

namespace reshard {

namespace {

bool splits(const Dim& dim, Index prime) {
    const Index tile = tile_extent(dim);
    return tile > 0 && tile % prime == 0;
}

bool uses(const Dim& dim, Atom atom) {
    return std::ranges::any_of(dim.atoms, [&](Atom one) {
        return one.stride <= atom.stride && atom.stride * atom.size <= one.stride * one.size;
    });
}

// The dimension that this atom shards in the source, where its pieces are already apart; else the one with the largest
// tile side.
std::optional<std::size_t> place_for(const Layout& layout, const Layout& source, Atom atom) {
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        if (!splits(layout.dims[i], atom.size)) continue;
        if (uses(source.dims[i], atom)) return i;
        if (!place || tile_extent(layout.dims[i]) > tile_extent(layout.dims[*place])) place = i;
    }
    return place;
}

}  // namespace

std::optional<Plan> fetch_once(const Problem& problem, Vocabulary vocabulary, Index inside) {
    if (!same_summands(problem.source, problem.target)) return std::nullopt;
    Layout scattered = problem.target;
    const AtomList replicated = complement(used_atoms(problem.target), device_count(problem.target));
    for (const Atom& atom : split_into_primes(problem.target.mesh, replicated)) {
        if (atom.stride >= inside) continue;
        const auto place = place_for(scattered, problem.source, atom);
        if (!place) continue;
        AtomList& atoms = scattered.dims[*place].atoms;
        atoms.push_back(atom);
        atoms = canonical(std::move(atoms));
    }
    if (same_tiles(scattered, problem.target)) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    if (!same_tiles(problem.source, scattered)) {
        if (vocabulary == Vocabulary::all)
            plan.steps.push_back({StepKind::exchange, scattered});
        else
            plan.steps = three_stage({problem.source, scattered}, vocabulary, index_max).steps;
    }
    plan.steps.push_back({StepKind::all_gather, problem.target});
    return plan;
}

}  // namespace reshard
