#include "synth/search/refinement.hpp"

#include <algorithm>
#include <cassert>

#include "reshard/planner/refinement.hpp"

namespace reshard {

AtomList split_into_primes(const Mesh& mesh, const AtomList& atoms) {
    AtomList primes;
    const auto split = [&](Atom atom) {
        Index above = atom.size;
        for (const Index p : prime_factors(atom.size)) {
            above /= p;
            primes.push_back({p, atom.stride * above});
        }
    };
    for (const Atom& atom : atoms) {
        const auto names = names_of(mesh, atom);
        if (!names)
            split(atom);
        else
            for (const SubAxis& part : *names) split(*atom_of(mesh, part));
    }
    return primes;
}

std::optional<AtomList> common_refinement(const Layout& a, const Layout& b) {
    std::vector<Index> borders;
    append_borders(a, borders);
    append_borders(b, borders);
    auto digits = refinement(std::move(borders));
    if (!digits) return std::nullopt;
    AtomList used = used_atoms(a);
    const AtomList more = used_atoms(b);
    used.insert(used.end(), more.begin(), more.end());
    std::erase_if(*digits, [&](Atom digit) {
        return std::ranges::none_of(used, [&](Atom atom) { return is_within(digit, atom); });
    });
    return digits;
}

AtomList cut(const AtomList& atoms, const AtomList& digits) {
    AtomList pieces;
    for (const Atom& atom : atoms)
        for (const Atom& digit : digits)
            if (is_within(digit, atom)) pieces.push_back(digit);
    return pieces;
}

Reduction reduction_of(const Problem& problem) {
    assert(problem.source.unreduced.empty() || problem.target.unreduced.empty() ||
           problem.source.reduction == problem.target.reduction);
    return problem.source.unreduced.empty() ? problem.target.reduction : problem.source.reduction;
}

}  // namespace reshard
