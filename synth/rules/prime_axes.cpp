#include "synth/rules/prime_axes.hpp"

#include <algorithm>

namespace reshard {

Index count_of(const AtomList& atoms, Index prime) {
    return std::ranges::count_if(atoms, [&](Atom atom) { return atom.size == prime; });
}

Index count_of(const PrimeAxes& lists, Index prime) {
    Index total = 0;
    for (const AtomList& atoms : lists) total += count_of(atoms, prime);
    return total;
}

bool is_prefix(const AtomList& prefix, const AtomList& list) {
    return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

AtomList Primes::of(const AtomList& atoms) const {
    AtomList pieces;
    for (const Atom& atom : atoms) {
        // The refinement has no digits for atoms that neither end uses.
        const AtomList parts = shared_ ? cut({atom}, *shared_) : AtomList{};
        if (combinations(parts) == atom.size)
            pieces.insert(pieces.end(), parts.begin(), parts.end());
        else
            pieces.push_back(atom);
    }
    return split_into_primes(problem_.source.mesh, pieces);
}

PrimeAxes Primes::of(const Layout& layout) const {
    PrimeAxes lists;
    for (const Dim& dim : layout.dims) lists.push_back(of(dim.atoms));
    return lists;
}

AtomList Primes::unused_by(const Layout& layout) const {
    AtomList used = used_atoms(layout);
    AtomList unused = shared_ ? *shared_ : AtomList{};
    std::erase_if(unused, [&](Atom digit) {
        used.push_back(digit);
        const bool taken = !disjoint(used);
        used.pop_back();
        return taken;
    });
    used.insert(used.end(), unused.begin(), unused.end());
    const AtomList spare = complement(used, device_count(layout));
    unused.insert(unused.end(), spare.begin(), spare.end());
    return of(unused);
}

bool Primes::splits(const AtomList& atoms, std::size_t dim, Index prime) const {
    const Index extent = problem_.source.dims[dim].extent;
    const Index tile = ceil_divide(extent, combinations(atoms));
    return tile % prime == 0 || tile == extent;
}

void Primes::continue_prefixes(PrimeAxes& lists, const PrimeAxes& goal, AtomList& unused,
                               const std::function<bool(Index)>& wanted) const {
    for (std::size_t i = 0; i < lists.size(); ++i)
        while (is_prefix(lists[i], goal[i]) && lists[i].size() < goal[i].size()) {
            const Atom next = goal[i][lists[i].size()];
            const auto free = std::ranges::find(unused, next);
            if (free == unused.end() || !wanted(next.size) || !splits(lists[i], i, next.size)) break;
            lists[i].push_back(next);
            unused.erase(free);
        }
}

void Primes::append_missing(PrimeAxes& lists, const PrimeAxes& goal, AtomList& unused) const {
    const auto missing = [&](Index prime) { return count_of(goal, prime) > count_of(lists, prime); };
    continue_prefixes(lists, goal, unused, missing);
    for (std::size_t i = 0; i < lists.size(); ++i)
        for (const Atom& wanted : goal[i]) {
            const Index prime = wanted.size;
            if (!missing(prime) || count_of(lists[i], prime) >= count_of(goal[i], prime) || !splits(lists[i], i, prime))
                continue;
            auto free = std::ranges::find(unused, wanted);
            if (free == unused.end())
                free = std::ranges::find_if(unused, [&](Atom atom) { return atom.size == prime; });
            if (free == unused.end()) continue;
            lists[i].push_back(*free);
            unused.erase(free);
        }
}

void Primes::append_in_pairs(PrimeAxes& lists, PrimeAxes& goal, AtomList& unused, AtomList& spare) const {
    const auto take = [](AtomList& from, Index prime) {
        const auto atom = std::ranges::find_if(from, [&](Atom one) { return one.size == prime; });
        const Atom taken = *atom;
        from.erase(atom);
        return taken;
    };
    for (std::size_t k = 0; k < unused.size();) {
        const Index prime = unused[k].size;
        const bool paired = std::ranges::any_of(spare, [&](Atom atom) { return atom.size == prime; });
        const auto here = place_where(lists, goal, prime);
        const auto there = place_where(goal, lists, prime);
        std::optional<std::pair<std::size_t, std::size_t>> places;
        if (here && there) places.emplace(*here, *there);
        for (std::size_t i = 0; i < goal.size() && !places; ++i)
            if (splits(lists[i], i, prime) && splits(goal[i], i, prime)) places.emplace(i, i);
        if (!paired || !places) {
            ++k;
            continue;
        }
        lists[places->first].push_back(take(unused, prime));
        goal[places->second].push_back(take(spare, prime));
        k = 0;
    }
}

// A dimension that the prime can split and that has it less often in `lists` than in `other`.
std::optional<std::size_t> Primes::place_where(const PrimeAxes& lists, const PrimeAxes& other, Index prime) const {
    for (std::size_t i = 0; i < lists.size(); ++i)
        if (count_of(lists[i], prime) < count_of(other[i], prime) && splits(lists[i], i, prime)) return i;
    return std::nullopt;
}

}  // namespace reshard
