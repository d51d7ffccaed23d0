// The common refinement: digits into which all atoms of several lists can be cut. It exists if the borders of the atoms
// form a chain of divisors.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"

namespace reshard {

/// Appends the strides at which atoms begin and end. Call it for each list separately: neighbours from different lists
/// would merge, and the border between them would be lost.
template <class Borders>
void append_borders(std::span<const Atom> atoms, Borders& borders) {
    for (const Atom& atom : atoms) {
        borders.push_back(atom.stride);
        borders.push_back(atom.stride * atom.size);
    }
}
/// Appends the borders of the atoms of all dimensions and of the summands, each list separately.
void append_borders(const Layout& layout, std::vector<Index>& borders);

/// Sorts the borders. True when each divides the next.
template <class Borders>
[[nodiscard]] bool form_chain(Borders& borders) {
    std::sort(borders.begin(), borders.end());
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i] % borders[i - 1] != 0) return false;
    return true;
}

/// True when the borders of both layouts form one chain: then the atoms of both can be cut into common digits.
[[nodiscard]] bool commensurable(const Layout& a, const Layout& b);

/// The digits between neighbouring borders, most major first; nullopt if the borders form no chain.
[[nodiscard]] std::optional<AtomList> refinement(std::vector<Index> borders);

/// True when the digit is part of the atom. pre: it crosses no border of the atom.
[[nodiscard]] constexpr bool is_within(Atom digit, Atom atom) {
    return atom.stride <= digit.stride && digit.stride < atom.stride * atom.size;
}

}  // namespace reshard
