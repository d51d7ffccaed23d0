#include "synth/search/space.hpp"

#include <algorithm>
#include <span>

#include "reshard/planner/refinement.hpp"

namespace reshard {

Index SearchSpace::shards(List list) const {
    Index product = 1;
    for (std::size_t j = 0; j < list.size(); ++j) product *= size(list[j]);
    return product;
}

std::uint32_t SearchSpace::cover_of(List list) const {
    std::uint32_t set = 0;
    for (std::size_t j = 0; j < list.size(); ++j) set |= pieces[list[j]].cover;
    return set;
}

std::uint32_t SearchSpace::clashes_of(List list) const {
    std::uint32_t set = 0;
    for (std::size_t j = 0; j < list.size(); ++j) set |= pieces[list[j]].clashes;
    return set;
}

Index SearchSpace::combinations_of(std::uint32_t set) const {
    Index product = 1;
    for (std::size_t bit = 0; set >> bit != 0; ++bit) {
        if ((set >> bit & 1) == 0) continue;
        const Index low = lows[bit];
        while ((set >> (bit + 1) & 1) != 0 && lows[bit + 1] == highs[bit]) ++bit;
        if (highs[bit] % low != 0) return 0;
        product *= highs[bit] / low;
    }
    return product;
}

int SearchSpace::find(Index size, Index stride) const {
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].size == size && pieces[i].stride == stride) return static_cast<int>(i);
    return -1;
}

void SearchSpace::append(List& list, std::uint8_t piece) const {
    list.push(piece);
    if (!mixed) return;
    for (std::size_t at = list.size() - 1; at > 0; --at) {
        const Piece& major = pieces[list[at - 1]];
        const Piece& minor = pieces[list[at]];
        if (major.stride != minor.stride * minor.size || major.size <= minor.size) return;
        const int first = find(minor.size, minor.stride * major.size);
        const int second = find(major.size, minor.stride);
        if (first < 0 || second < 0) return;
        list.set(at - 1, static_cast<std::uint8_t>(first));
        list.set(at, static_cast<std::uint8_t>(second));
    }
}

void SearchSpace::append_shorter(List list, Shorter& shorter) const {
    if (list.empty()) return;
    if (!mixed) {
        while (!list.empty()) {
            list.pop();
            shorter.push_back(list);
        }
        return;
    }
    // Any of the cuts that continue each other can be the minor one.
    const auto add = [&](List next) {
        if (shorter.full() || std::find(shorter.begin(), shorter.end(), next) != shorter.end()) return;
        shorter.push_back(next);
        append_shorter(next, shorter);
    };
    List next = list;
    next.pop();
    add(next);
    for (std::size_t from = list.size() - 1; from-- > 0;) {
        const Piece& above = pieces[list[from]];
        const Piece& below = pieces[list[from + 1]];
        if (above.stride != below.stride * below.size) return;
        // Leave out the piece at `from`: what lies below it moves up.
        List rest;
        for (std::size_t j = 0; j < from; ++j) rest.push(list[j]);
        bool there = true;
        for (std::size_t j = from + 1; j < list.size() && there; ++j) {
            const int moved = find(pieces[list[j]].size, pieces[list[j]].stride * above.size);
            there = moved >= 0;
            if (there) rest.push(static_cast<std::uint8_t>(moved));
        }
        if (there) add(rest);
    }
}

namespace {

// The pieces of `list` at the end of `atoms`; what lies right below the last atom becomes one with it.
template <class Atoms>
void append_merged(Atoms& atoms, std::span<const Piece> pieces, List list) {
    for (std::size_t j = 0; j < list.size(); ++j) {
        const Piece& piece = pieces[list[j]];
        if (!atoms.empty() && atoms.back().stride == piece.stride * piece.size)
            atoms.back() = {atoms.back().size * piece.size, piece.stride};
        else
            atoms.push_back({piece.size, piece.stride});
    }
}

}  // namespace

InlineVector<Atom, digits_max> SearchSpace::merged(List list) const {
    InlineVector<Atom, digits_max> atoms;
    append_merged(atoms, pieces, list);
    return atoms;
}

namespace {

// Takes the digits that lead both lists off them, as `visit(size, stride)`; true when one list is used up.
template <class Atoms, class Visit>
bool walk_common(Atoms one, Atoms other, const Visit& visit) {
    for (std::size_t i = 0, j = 0; i < one.size() && j < other.size();) {
        Atom& x = one[i];
        Atom& y = other[j];
        const Index common = std::min(x.size, y.size);
        if (x.size * x.stride != y.size * y.stride || x.size % common != 0 || y.size % common != 0) return false;
        x.size /= common;
        y.size /= common;
        visit(common, x.size * x.stride);
        if (x.size == 1) ++i;
        if (y.size == 1) ++j;
    }
    return true;
}

}  // namespace

bool SearchSpace::comparable(List a, List b) const {
    if (a.comparable(b)) return true;
    return mixed && walk_common(merged(a), merged(b), [](Index, Index) {});
}

std::uint32_t SearchSpace::common_cover(List a, List b) const {
    std::uint32_t set = 0;
    if (!mixed) {
        for (std::size_t j = 0; j < a.common(b); ++j) set |= pieces[a[j]].cover;
        return set;
    }
    walk_common(merged(a), merged(b), [&](Index size, Index stride) {
        for (std::size_t bit = 0; bit < lows.size(); ++bit)
            if (stride <= lows[bit] && highs[bit] <= stride * size) set |= 1u << bit;
    });
    return set;
}

bool SearchSpace::commensurable(const State& a, const State& b) const {
    if (!mixed) return true;
    InlineVector<Index, 4 * pieces_max> borders;
    for (const State* state : {&a, &b})
        for (std::size_t i = 0; i < lists; ++i) append_borders(merged(state->lists[i]), borders);
    return form_chain(borders);
}

bool SearchSpace::nests(std::size_t dim, Index fewer, Index more) const {
    if (by_turns || fewer == more) return true;
    if (even) return !limited || extents[dim] % more == 0;
    const Index tile = ceil_divide(extents[dim], fewer);
    // Behind a cancelled prefix the extent is a tile, not the dimension.
    const bool whole_dim = tile == extents[dim] && prefixes[dim].empty();
    return whole_dim || checked_multiply(ceil_divide(extents[dim], more), more / fewer) == tile;
}

Interval SearchSpace::share(std::size_t dim, List list, Index shard) const {
    Index below = shards(list);
    if (!by_turns) return block(extents[dim], ceil_divide(extents[dim], below), shard);
    Interval held{0, extents[dim]};
    for (std::size_t j = 0; j < list.size(); ++j) {
        below /= size(list[j]);
        const Interval inner =
            block(held.size(), ceil_divide(held.size(), size(list[j])), shard / below % size(list[j]));
        held = {held.begin + inner.begin, held.begin + inner.end};
    }
    return held;
}

bool SearchSpace::in_pieces(std::size_t dim, List list) const {
    if (!by_turns) return false;
    const Index all = shards(list);
    const Index size_of_tile = ceil_divide(extents[dim], all);
    Index above = 1;
    for (std::size_t j = 0; j < list.size(); ++j) {
        above *= size(list[j]);
        const Index tile = ceil_divide(extents[dim], above);
        if (tile != extents[dim] && checked_multiply(size_of_tile, all / above) != tile) return true;
    }
    return false;
}

bool SearchSpace::same_cut(std::size_t dim, List a, List b) const {
    if (!by_turns || extents[dim] % shards(a) == 0) return true;
    bool same = a.size() == b.size();
    for (std::size_t j = 0; same && j < a.size(); ++j) same = size(a[j]) == size(b[j]);
    for (Index shard = shards(a); !same && shard-- > 0;) {
        const Interval one = share(dim, a, shard);
        if (one.size() != share(dim, b, shard).size()) return false;
    }
    return true;
}

bool same_digits(const SearchSpace& a, const SearchSpace& b) {
    const auto same = [](const Piece& x, const Piece& y) { return x.size == y.size && x.stride == y.stride; };
    return a.by_turns == b.by_turns && a.prefixes == b.prefixes &&
           std::ranges::is_permutation(a.pieces, b.pieces, same);
}

Layout SearchSpace::layout(const State& state) const {
    Layout made = *like;
    for (std::size_t i = 0; i < dims(); ++i) {
        AtomList atoms = prefixes[i];
        append_merged(atoms, pieces, state.lists[i]);
        if (!by_turns) {
            made.dims[i].atoms = std::move(atoms);
            continue;
        }
        InlineVector<Index, digits_max> factors;
        for (std::size_t j = 0; j < state.lists[i].size(); ++j) factors.push_back(size(state.lists[i][j]));
        made.dims[i] = chunked_per_axis(extents[i], std::move(atoms), {factors.begin(), factors.size()});
    }
    made.unreduced.clear();
    append_merged(made.unreduced, pieces, state.lists[dims()]);
    made.unreduced = as_set(std::move(made.unreduced));
    made.reduction = reduction;
    return made;
}

}  // namespace reshard
