// Below the names of axes there are only atoms: digits of the position of a device in the mesh.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reshard/mesh.hpp"

namespace reshard {

/// A digit of the position in the mesh, which is the device number unless the mesh lists its devices:
/// coordinate(position) = position / stride mod size. Axes and sub-axes all become atoms; names are for printing.
struct Atom {
    Index size = 1;    ///< values that the digit takes
    Index stride = 1;  ///< product of the sizes of all digits below it
    friend auto operator<=>(const Atom&, const Atom&) = default;
};

/// The value of the digit at this position of the mesh.
[[nodiscard]] constexpr Index coordinate(Atom atom, Index device) { return device / atom.stride % atom.size; }

/// The atom of a (sub-)axis. Fails with Code::layout on an unknown axis or a factor that does not divide.
[[nodiscard]] Result<Atom> atom_of(const Mesh& mesh, const SubAxis& axis);

/// The names of an atom in this mesh, major to minor (more than one when it spans axes); nullopt when it has none.
[[nodiscard]] std::optional<std::vector<SubAxis>> names_of(const Mesh& mesh, Atom atom);

/// An ordered list of atoms, major to minor, in canonical form: no size 1, neighbours that continue each other merged.
/// Two canonical lists are equal exactly when they are the same digits in the same order.
using AtomList = std::vector<Atom>;

/// The same digits in canonical form.
[[nodiscard]] AtomList canonical(AtomList atoms);
/// True when canonical() leaves the list as it is.
[[nodiscard]] bool is_canonical(std::span<const Atom> atoms);

/// The same atoms as a set: sorted by stride, most major first, and canonical.
[[nodiscard]] AtomList as_set(AtomList atoms);

/// Product of the sizes: how many values the digits take together.
[[nodiscard]] Index combinations(std::span<const Atom> atoms);

/// Mixed-radix value of the digits of `device`, the first atom most major.
[[nodiscard]] Index value_of(std::span<const Atom> atoms, Index device);

/// True when no two atoms share a digit and each pair has a common refinement (one lies wholly above the other).
[[nodiscard]] bool disjoint(std::span<const Atom> atoms);

/// What is left of `list` after the prefix `prefix`, or nullopt when it is no prefix. Atoms are split where needed.
/// pre: both canonical.
[[nodiscard]] std::optional<AtomList> after_prefix(const AtomList& list, const AtomList& prefix);

/// The longest list of digits that leads both. pre: both canonical.
[[nodiscard]] AtomList common_prefix(AtomList a, AtomList b);

/// Digits that lie in both sets, as a set; digits whose borders do not align are left out. pre: both sets.
[[nodiscard]] AtomList common_digits(const AtomList& a, const AtomList& b);

/// Digits of the device number that none of `atoms` uses, most major first. pre: disjoint(atoms).
[[nodiscard]] AtomList complement(std::span<const Atom> atoms, Index devices);

/// Sets the digits of `device` so that value_of(atoms, result) == value.
[[nodiscard]] Index with_value(std::span<const Atom> atoms, Index device, Index value);

/// The devices that differ from `device` on these atoms only, ordered by value_of(atoms, .).
[[nodiscard]] std::vector<Index> group_of(std::span<const Atom> atoms, Index device);

/// `set` without the digits of `part`, as a set; nullopt when `part` is not within it. pre: both sets.
[[nodiscard]] std::optional<AtomList> without(const AtomList& set, const AtomList& part, Index devices);

/// Prime factors, ascending; a factor without a divisor up to 2^16 counts as one. pre: n >= 1.
[[nodiscard]] std::vector<Index> prime_factors(Index n);

}  // namespace reshard
