// The common refinement: digits into which all atoms of several lists can be cut. There is one where the borders of the
// atoms form a chain of divisors.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"

namespace reshard {

/// Appends the strides at which atoms begin and end. Atoms of each list by itself: neighbours from different lists
/// would merge to one, and the border between them would be lost.
template <class Borders>
void append_borders(std::span<const Atom> atoms, Borders& borders) {
    for (const Atom& atom : atoms) {
        borders.push_back(atom.stride);
        borders.push_back(atom.stride * atom.size);
    }
}
/// The borders of all dimensions' atoms and of the summands', each list by itself.
void append_borders(const Layout& layout, std::vector<Index>& borders);

/// Sorts the borders. True when each divides the next.
template <class Borders>
[[nodiscard]] bool form_chain(Borders& borders) {
    std::sort(borders.begin(), borders.end());
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i] % borders[i - 1] != 0) return false;
    return true;
}

/// The borders of both layouts form one chain: there are digits into which the atoms of both can be cut.
[[nodiscard]] bool commensurable(const Layout& a, const Layout& b);

/// The digits between neighbouring borders, most major first; nullopt where the borders form no chain.
[[nodiscard]] std::optional<AtomList> refinement(std::vector<Index> borders);

/// True when the digit is one of those into which the atom is cut. pre: it crosses no border of the atom.
[[nodiscard]] constexpr bool is_within(Atom digit, Atom atom) {
    return atom.stride <= digit.stride && digit.stride < atom.stride * atom.size;
}

}  // namespace reshard
