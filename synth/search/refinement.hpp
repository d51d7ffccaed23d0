// Atoms cut into smaller ones.
#pragma once

#include <optional>

#include "reshard/problem.hpp"

namespace reshard {

/// Each atom as a list of atoms of prime size, most major first, the least primes first; cut at the borders of the
/// mesh's axes before anything else, so that every piece has a name.
[[nodiscard]] AtomList split_into_primes(const Mesh& mesh, const AtomList& atoms);

/// The atoms of a list cut into the digits that lie in them. pre: no digit crosses a border of the list.
[[nodiscard]] AtomList cut(const AtomList& atoms, const AtomList& digits);

/// The digits that the atoms of both layouts can be cut into, most major first; nullopt when the cuts do not form a
/// chain of divisors (the layouts are not commensurable). Digits that neither uses are left out: they replicate
/// throughout.
[[nodiscard]] std::optional<AtomList> common_refinement(const Layout& a, const Layout& b);

/// The reduction of the layouts between the ends of a problem: the one of the end with summands. pre: at most one kind.
[[nodiscard]] Reduction reduction_of(const Problem& problem);

}  // namespace reshard
