// What an exchange carries over each level of the network.
#include <algorithm>

#include "reshard/cost.hpp"

namespace reshard {

namespace {

// The factor of a digit whose values differ by `devices` devices or more. A border inside a digit that does not divide
// it leaves it whole.
Index size_above(Atom atom, Index devices) {
    const Index top = saturating_multiply(atom.stride, atom.size);
    if (atom.stride >= devices) return atom.size;
    if (top <= devices) return 1;
    return devices % atom.stride == 0 && top % devices == 0 ? top / devices : atom.size;
}

// The least prime factor, or n when that is over 2^16.
Index least_factor(Index n) {
    for (Index p = 2; p <= n / p && p < (Index{1} << 16); ++p)
        if (n % p == 0) return p;
    return n;
}

}  // namespace

void LevelTraffic::match(std::span<const Atom> far, std::span<const Atom> near) {
    std::size_t i = 0;
    std::size_t j = 0;
    Atom mine = far.empty() ? Atom{} : far[0];
    Atom wanted = near.empty() ? Atom{} : near[0];
    bool aligned = true;
    while (i < far.size() && j < near.size()) {
        aligned = mine.size % wanted.size == 0 || wanted.size % mine.size == 0;
        if (!aligned) break;
        const Index size = least_factor(std::min(mine.size, wanted.size));  // what a border may part is not one digit
        const Atom there{size, mine.size / size * mine.stride};
        const Atom here{size, wanted.size / size * wanted.stride};
        if (there != here) add({there, here, Kind::fixed});  // the same digit agrees with itself
        mine.size /= size;
        wanted.size /= size;
        if (mine.size == 1 && ++i < far.size()) mine = far[i];
        if (wanted.size == 1 && ++j < near.size()) wanted = near[j];
    }
    for (; i < far.size(); mine = ++i < far.size() ? far[i] : mine) add({mine, {}, aligned ? Kind::free : Kind::fixed});
}

void LevelTraffic::stripe(std::span<const Atom> atoms) {
    for (const Atom& atom : atoms) add({atom, {}, Kind::striped});
}

void LevelTraffic::scatter(std::span<const Atom> atoms) {
    for (const Atom& atom : atoms) add({atom, {}, Kind::fixed});
}

Index LevelTraffic::above(Kind kind, Index devices) const {
    Index product = 1;
    for (std::size_t i = 0; i < count_; ++i)
        if (digits_[i].kind == kind) product = saturating_multiply(product, size_above(digits_[i].atom, devices));
    return product;
}

// True when some device agrees with its partners in all fixed digits beyond `outer` and differs from them in one
// between `inner` and `outer`. Two digits that others make equal cannot differ there.
bool LevelTraffic::differs(Index inner, Index outer) const {
    const auto beyond = [&](const Digit& digit) { return size_above(digit.atom, outer) > 1; };
    const auto connected = [&](const Digit& digit) {
        std::array<Atom, digits_max> reached;
        std::size_t count = 0;
        reached[count++] = digit.atom;
        for (std::size_t at = 0; at < count; ++at)
            for (std::size_t i = 0; i < count_; ++i) {
                const Digit& edge = digits_[i];
                if (edge.kind != Kind::fixed || edge.other.size == 1 || !beyond(edge)) continue;
                for (const auto& [one, two] : {std::pair(edge.atom, edge.other), std::pair(edge.other, edge.atom)})
                    if (one == reached[at] && std::find(reached.begin(), reached.begin() + count, two) ==
                                                  reached.begin() + static_cast<std::ptrdiff_t>(count))
                        reached[count++] = two;
            }
        return std::find(reached.begin(), reached.begin() + count, digit.other) !=
               reached.begin() + static_cast<std::ptrdiff_t>(count);
    };
    for (std::size_t i = 0; i < count_; ++i) {
        const Digit& digit = digits_[i];
        if (digit.kind != Kind::fixed || size_above(digit.atom, inner) <= size_above(digit.atom, outer)) continue;
        if (!connected(digit)) return true;
    }
    return false;
}

// The elements of a tile whose partner is among the `outer` devices around the device but not among the `inner` ones,
// in units: the free and the striped digits run over all their values together.
//   K   the part of the tile that the device holds itself,
//   A   the part whose holder agrees with the device in all digits above a border,
//   r   the part of the stripes that does so.
// A receiver finds A r + K (1 - r) of what it wants within that border; a sender serves A r of what it has to serve
// there. The busiest device agrees with its partners in all fixed digits beyond the level, and in none within it where
// that can be.
Index LevelTraffic::units(Index inner, Index outer) const {
    const Index free = above(Kind::free, 1);
    const Index stripes = above(Kind::striped, 1);
    const Index outer_stripes = stripes / above(Kind::striped, outer);
    const Index inner_stripes = stripes / above(Kind::striped, inner);
    const Index from_outer = free / above(Kind::free, outer) * outer_stripes;
    const Index from_inner = differs(inner, outer) ? 0 : free / above(Kind::free, inner) * inner_stripes;
    const Index held = near_ == End::sender || differs(1, outer) ? 0 : outer_stripes - inner_stripes;
    return std::max<Index>(from_outer - from_inner - held, 0);
}

void LevelTraffic::raise(Index tile, const Machine& machine, std::span<Index> loads) const {
    const Index whole = saturating_multiply(above(Kind::free, 1), above(Kind::striped, 1));
    Index inner = 1;
    for (std::size_t i = 0; i < machine.levels.size(); ++i) {
        const Index outer = i + 1 == machine.levels.size() ? index_max : machine.levels[i].devices;
        loads[i] = std::max(loads[i], scale_up(tile, units(inner, outer), whole));
        inner = outer;
    }
}

}  // namespace reshard
