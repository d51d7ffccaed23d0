#include "synth/rules/fetch_once.hpp"

#include <algorithm>

#include "reshard/planner/refinement.hpp"
#include "src/price/network_digits.hpp"
#include "synth/rules/three_stage.hpp"
#include "synth/search/refinement.hpp"

namespace reshard {

namespace {

bool splits(const Dim& dim, Index prime) {
    const Index tile = block_extent(dim);
    return by_ceil_div(dim) && tile > 0 && tile % prime == 0;
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
        if (!place || block_extent(layout.dims[i]) > block_extent(layout.dims[*place])) place = i;
    }
    return place;
}

std::vector<AtomList> by_levels(const Layout& layout, const AtomList& atoms, const Machine& machine) {
    const AtomList primes = split_into_primes(layout.mesh, atoms);
    std::vector<AtomList> levels(machine.levels.size());
    if (levels.size() == 1) {
        levels[0] = primes;
        return levels;
    }
    std::vector<Index> borders;
    append_borders(primes, borders);
    const NetworkDigits network(layout.mesh, std::move(borders), machine);
    for (const Atom& prime : primes) levels[network.level(prime)].push_back(prime);
    return levels;
}

AtomList replicated(const Layout& layout) { return complement(used_atoms(layout), device_count(layout)); }

// If no dimension splits evenly, the longest side.
static std::optional<std::size_t> uneven_place(const Layout& layout, Atom prime) {
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        const Dim& dim = layout.dims[i];
        if (!by_ceil_div(dim) || block_extent(dim) < prime.size) continue;
        if (!place || block_extent(dim) > block_extent(layout.dims[*place])) place = i;
    }
    return place;
}

Layout scattered(Layout layout, const Layout& source, const AtomList& primes) {
    for (const Atom& prime : primes) {
        auto place = place_for(layout, source, prime);
        if (!place) place = uneven_place(layout, prime);
        if (!place) continue;
        AtomList& atoms = layout.dims[*place].atoms;
        atoms.push_back(prime);
        atoms = canonical(std::move(atoms));
    }
    return layout;
}

std::vector<Layout> scattered_by_levels(const Layout& target, const Layout& source, const Machine& machine,
                                        std::size_t level) {
    std::vector<AtomList> levels = by_levels(target, replicated(target), machine);
    levels.resize(std::min(levels.size(), level + 1));
    std::vector<Layout> layouts = {target};
    for (const AtomList& primes : levels) {
        Layout layout = scattered(layouts.back(), source, primes);
        if (!equivalent(layout, layouts.back())) layouts.push_back(std::move(layout));
    }
    return layouts;
}

void gather_by_levels(std::vector<Step>& steps, const std::vector<Layout>& layouts) {
    for (std::size_t i = layouts.size(); i-- > 1;) {
        const Step gather{StepKind::all_gather, layouts[i - 1]};
        // Borders of uneven shares may not nest. The step is an exchange then.
        steps.push_back(type_step(layouts[i], gather) ? gather : Step{StepKind::exchange, layouts[i - 1]});
    }
}

std::optional<Plan> fetch_once(const Problem& problem, Vocabulary vocabulary, const Machine& machine,
                               std::size_t level) {
    if (!same_summands(problem.source, problem.target)) return std::nullopt;
    const std::vector<Layout> layouts = scattered_by_levels(problem.target, problem.source, machine, level);
    if (layouts.size() == 1) return std::nullopt;
    Plan plan{problem.source, problem.target, {}};
    if (!equivalent(problem.source, layouts.back())) {
        if (vocabulary == Vocabulary::all)
            plan.steps.push_back({StepKind::exchange, layouts.back()});
        else
            plan.steps = three_stage({problem.source, layouts.back()}, vocabulary, index_max).steps;
    }
    gather_by_levels(plan.steps, layouts);
    const bool exchanges = std::ranges::find(plan.steps, StepKind::exchange, &Step::kind) != plan.steps.end();
    if (exchanges && vocabulary == Vocabulary::collectives) return std::nullopt;
    return plan;
}

}  // namespace reshard
