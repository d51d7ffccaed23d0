// Atoms stand below the names of axes. An atom is a digit of a device's position in the mesh.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reshard/mesh.hpp"

namespace reshard {

/// A digit of a position in the mesh: coordinate(position) = position / stride mod size. The position is the device
/// number unless the mesh lists its devices. All axes and sub-axes become atoms; names are for printing.
struct Atom {
    Index size = 1;    ///< values that the digit takes
    Index stride = 1;  ///< product of the sizes of all digits below it
    friend auto operator<=>(const Atom&, const Atom&) = default;
};

/// The value of the digit for this device: its position in the mesh.
[[nodiscard]] constexpr Index coordinate(Atom atom, Index device) { return device / atom.stride % atom.size; }

/// The atom of a (sub-)axis. Fails with Code::layout on an unknown axis or a factor that does not divide.
[[nodiscard]] Result<Atom> atom_of(const Mesh& mesh, const SubAxis& axis);

/// The names of an atom in this mesh, major to minor: several if it spans axes, nullopt if it has no name.
[[nodiscard]] std::optional<std::vector<SubAxis>> names_of(const Mesh& mesh, Atom atom);

/// An ordered list of atoms, major to minor. In canonical form no atom has size 1, and neighbours that continue each
/// other are merged. Two canonical lists are equal exactly when they have the same digits in the same order.
using AtomList = std::vector<Atom>;

/// The same digits in canonical form.
[[nodiscard]] AtomList canonical(AtomList atoms);
/// True when canonical() leaves the list as it is.
[[nodiscard]] bool is_canonical(std::span<const Atom> atoms);

/// The same atoms as a set: sorted by stride, most major first, and canonical.
[[nodiscard]] AtomList as_set(AtomList atoms);

/// How many values the digits take together: the product of their sizes.
[[nodiscard]] Index combinations(std::span<const Atom> atoms);

/// The value of the digits of `device` as one mixed-radix number, the first atom most major.
[[nodiscard]] Index value_of(std::span<const Atom> atoms, Index device);

/// True when no two atoms share a digit, and in each pair one atom lies wholly above the other.
[[nodiscard]] bool disjoint(std::span<const Atom> atoms);

/// The rest of `list` after `prefix`; nullopt if `list` does not begin with it. Atoms are split if necessary.
/// pre: both canonical.
[[nodiscard]] std::optional<AtomList> after_prefix(const AtomList& list, const AtomList& prefix);

/// The longest prefix that both lists have, in digits. pre: both canonical.
[[nodiscard]] AtomList common_prefix(AtomList a, AtomList b);

/// The digits in both sets, as a set. Digits whose borders do not align are left out. pre: both are sets (as_set).
[[nodiscard]] AtomList common_digits(const AtomList& a, const AtomList& b);

/// The digits of the device number that `atoms` leave unused, most major first. pre: disjoint(atoms).
[[nodiscard]] AtomList complement(std::span<const Atom> atoms, Index devices);

/// `device` with other digits, such that value_of(atoms, result) == value.
[[nodiscard]] Index with_value(std::span<const Atom> atoms, Index device, Index value);

/// The devices that differ from `device` in these atoms only, ordered by value_of(atoms, .).
[[nodiscard]] std::vector<Index> group_of(std::span<const Atom> atoms, Index device);

/// `set` without the digits of `part`, as a set; nullopt if `part` is not within it. pre: both are sets (as_set).
[[nodiscard]] std::optional<AtomList> without(const AtomList& set, const AtomList& part, Index devices);

/// The prime factors of n, ascending. A factor with no divisor up to 2^16 counts as prime. pre: n >= 1.
[[nodiscard]] std::vector<Index> prime_factors(Index n);

}  // namespace reshard
