#include "synth/search/refinement.hpp"

#include <algorithm>
#include <cassert>

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
    AtomList used = used_atoms(a);
    const AtomList more = used_atoms(b);
    used.insert(used.end(), more.begin(), more.end());
    for (const Layout* layout : {&a, &b}) {
        // The used set merges neighbours; the borders that matter are those of the lists.
        AtomList atoms = layout->unreduced;
        for (const Dim& dim : layout->dims) atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
        for (const Atom& atom : atoms) {
            borders.push_back(atom.stride);
            borders.push_back(atom.stride * atom.size);
        }
    }
    std::ranges::sort(borders);
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    AtomList digits;
    for (std::size_t i = borders.size(); i-- > 1;) {
        if (borders[i] % borders[i - 1] != 0) return std::nullopt;
        const Atom digit{borders[i] / borders[i - 1], borders[i - 1]};
        const auto covers = [&](Atom atom) {
            return atom.stride <= digit.stride && digit.stride < atom.stride * atom.size;
        };
        if (std::ranges::any_of(used, covers)) digits.push_back(digit);
    }
    return digits;
}

AtomList cut(const AtomList& atoms, const AtomList& digits) {
    AtomList pieces;
    for (const Atom& atom : atoms)
        for (const Atom& digit : digits)
            if (digit.stride >= atom.stride && digit.stride < atom.stride * atom.size) pieces.push_back(digit);
    return pieces;
}

Reduction reduction_of(const Problem& problem) {
    assert(problem.source.unreduced.empty() || problem.target.unreduced.empty() ||
           problem.source.reduction == problem.target.reduction);
    return problem.source.unreduced.empty() ? problem.target.reduction : problem.source.reduction;
}

}  // namespace reshard
