// How one dimension is cut into shards: by ceil-div, balanced, or in pieces.
#include <algorithm>
#include <cassert>
#include <utility>

#include "src/layout/regular_cut.hpp"

namespace reshard {

namespace {

Interval even_interval(Index extent, Index shards, Index shard) {
    return block(extent, ceil_divide(extent, shards), shard);
}

void append(std::vector<Dim::Piece>& pieces, Index end, Index shard) {
    const Index begin = pieces.empty() ? 0 : pieces.back().end;
    if (end <= begin) return;
    if (!pieces.empty() && pieces.back().shard == shard)
        pieces.back().end = end;
    else
        pieces.push_back({end, shard});
}

std::vector<Dim::Piece> regular_pieces(const Dim& dim) {
    const RegularCut cut(dim);
    std::vector<Dim::Piece> pieces;
    for (Index shard = 0; dim.extent > 0 && (pieces.empty() || pieces.back().end < dim.extent); ++shard)
        append(pieces, cut.at(shard).end, shard);
    return pieces;
}

bool cuts_as(const Dim& dim, const Dim& regular) {
    const RegularCut cut(regular);
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces)
        if (cut.at(piece.shard) != Interval{std::exchange(begin, piece.end), piece.end}) return false;
    return true;
}

// The first shards have an index more. Ceil-div cuts the same if no shard or all but one have it, or if others are
// empty.
bool is_balanced_only(Index extent, Index shards) {
    return extent >= shards && extent % shards > 0 && extent % shards < shards - 1;
}

// Indices of the largest tile and of the smallest. Either shards or pieces may be far more numerous.
std::pair<Index, Index> extents_of(const Dim& dim) {
    std::vector<Dim::Piece> sizes;  // by shard
    std::vector<Index> shares;      // of the shards that have a piece, or of all
    const Index shards = shard_count(dim);
    Index begin = 0;
    if (shards <= std::ssize(dim.pieces)) {
        shares.resize(static_cast<std::size_t>(shards), 0);
        for (const Dim::Piece& piece : dim.pieces) {
            shares[static_cast<std::size_t>(piece.shard)] += piece.end - begin;
            begin = piece.end;
        }
    } else {
        sizes.reserve(dim.pieces.size());
        for (const Dim::Piece& piece : dim.pieces) {
            sizes.push_back({piece.end - begin, piece.shard});
            begin = piece.end;
        }
        std::ranges::stable_sort(sizes, {}, &Dim::Piece::shard);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (i > 0 && sizes[i].shard == sizes[i - 1].shard)
                shares.back() += sizes[i].end;
            else
                shares.push_back(sizes[i].end);
    }
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    return {*most, std::ssize(shares) < shards ? 0 : *least};
}

// Removes empty pieces and merges neighbours of one shard.
void merge(std::vector<Dim::Piece>& pieces) {
    Index begin = 0;
    Index shard = -1;
    const bool merged = std::ranges::all_of(pieces, [&](const Dim::Piece& piece) {
        const bool apart = piece.end > std::exchange(begin, piece.end) && piece.shard != shard;
        shard = piece.shard;
        return apart;
    });
    if (merged) return;
    std::vector<Dim::Piece> kept;
    kept.reserve(pieces.size());
    for (const Dim::Piece& piece : pieces) append(kept, piece.end, piece.shard);
    pieces = std::move(kept);
}

Dim made(Index extent, AtomList atoms, std::vector<Dim::Piece> pieces) {
    Dim dim(extent, std::move(atoms), std::move(pieces));
    make_canonical(dim);
    return dim;
}

}  // namespace

void make_canonical(Dim& dim) {
    merge(dim.pieces);
    if (dim.pieces.empty()) {
        dim.balanced = dim.balanced && is_balanced_only(dim.extent, shard_count(dim));
        return;
    }
    dim.balanced = false;
    if (!std::ranges::is_sorted(dim.pieces, {}, &Dim::Piece::shard)) return;
    for (const bool evenly : {false, true}) {
        Dim regular(dim.extent, dim.atoms);
        regular.balanced = evenly && is_balanced_only(dim.extent, shard_count(dim));
        if (cuts_as(dim, regular)) {
            dim = std::move(regular);
            return;
        }
    }
}

Index shard_count(const Dim& dim) { return combinations(dim.atoms); }

bool by_ceil_div(const Dim& dim) { return dim.pieces.empty() && !dim.balanced; }

bool same_cut(const Dim& a, const Dim& b) {
    return a.extent == b.extent && shard_count(a) == shard_count(b) && a.balanced == b.balanced && a.pieces == b.pieces;
}

Interval interval(const Dim& dim, Index shard) {
    assert(dim.pieces.empty());
    return RegularCut(dim).at(shard);
}

std::vector<Dim::Piece> pieces_of(const Dim& dim) { return dim.pieces.empty() ? regular_pieces(dim) : dim.pieces; }

Index block_extent(const Dim& dim) {
    if (dim.pieces.empty()) return ceil_divide(dim.extent, shard_count(dim));
    return extents_of(dim).first;
}

// A device holds its block and nothing more.
Index tile_extent(const Dim& dim) { return block_extent(dim); }

Index tile_extent_min(const Dim& dim) {
    if (dim.pieces.empty()) return interval(dim, shard_count(dim) - 1).size();
    return extents_of(dim).second;
}

bool divides(const Dim& dim) { return by_ceil_div(dim) && dim.extent % shard_count(dim) == 0; }

Side side(const Dim& dim, Index shard) {
    Side held;
    if (dim.pieces.empty()) {
        const Interval held_here = interval(dim, shard);
        if (held_here.size() > 0) held.intervals.push_back(held_here);
        return held;
    }
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        if (piece.shard == shard) held.intervals.push_back({begin, piece.end});
        begin = piece.end;
    }
    return held;
}

std::vector<Side> sides(const Dim& dim) {
    std::vector<Side> all(static_cast<std::size_t>(shard_count(dim)));
    if (dim.pieces.empty()) {
        for (std::size_t shard = 0; shard < all.size(); ++shard) all[shard] = side(dim, static_cast<Index>(shard));
        return all;
    }
    std::vector<std::size_t> counts(all.size(), 0);
    for (const Dim::Piece& piece : dim.pieces) ++counts[static_cast<std::size_t>(piece.shard)];
    for (std::size_t shard = 0; shard < all.size(); ++shard) all[shard].intervals.reserve(counts[shard]);
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        all[static_cast<std::size_t>(piece.shard)].intervals.push_back({begin, piece.end});
        begin = piece.end;
    }
    return all;
}

Dim with_shard_sizes(AtomList atoms, std::span<const Index> shares) {
    assert(std::ssize(shares) == combinations(atoms));
    assert(std::ranges::all_of(shares, [](Index share) { return share >= 0; }));
    std::vector<Dim::Piece> pieces;
    Index end = 0;
    for (std::size_t shard = 0; shard < shares.size(); ++shard) {
        end += shares[shard];
        append(pieces, end, static_cast<Index>(shard));
    }
    return made(end, std::move(atoms), std::move(pieces));
}

Dim block_cyclic(Index extent, AtomList atoms, Index block) {
    assert(block >= 1);
    const Index shards = combinations(atoms);
    std::vector<Dim::Piece> pieces;
    if (shards > 1) pieces.reserve(static_cast<std::size_t>(ceil_divide(extent, block)));
    for (Index begin = 0, number = 0; begin < extent; begin += block, ++number)
        append(pieces, extent - begin > block ? begin + block : extent, number % shards);
    return made(extent, std::move(atoms), std::move(pieces));
}

Dim balanced(Index extent, AtomList atoms) {
    Dim dim(extent, std::move(atoms));
    dim.balanced = true;
    make_canonical(dim);
    return dim;
}

Dim chunked_per_axis(Index extent, AtomList atoms, std::span<const Index> factors) {
    std::vector<Interval> parts = {{0, extent}};
    for (const Index factor : factors) {
        std::vector<Interval> finer;
        finer.reserve(parts.size() * static_cast<std::size_t>(factor));
        for (const Interval& part : parts)
            for (Index i = 0; i < factor; ++i) {
                const Interval inner = even_interval(part.size(), factor, i);
                finer.push_back({part.begin + inner.begin, part.begin + inner.end});
            }
        parts = std::move(finer);
    }
    assert(std::ssize(parts) == combinations(atoms));
    std::vector<Dim::Piece> pieces;
    for (std::size_t shard = 0; shard < parts.size(); ++shard)
        append(pieces, parts[shard].end, static_cast<Index>(shard));
    return made(extent, std::move(atoms), std::move(pieces));
}

Dim coarsened(const Dim& dim, const AtomList& leading, Index factor) {
    assert(factor >= 1 && shard_count(dim) % factor == 0);
    if (leading.empty()) return Dim(dim.extent);
    if (factor == 1) {
        Dim same = dim;
        same.atoms = leading;
        return same;
    }
    std::vector<Dim::Piece> pieces;
    pieces.reserve(dim.pieces.size());
    for (const Dim::Piece& piece : dim.pieces) append(pieces, piece.end, piece.shard / factor);
    if (dim.pieces.empty()) {
        const RegularCut cut(dim);
        for (Index shard = factor - 1; shard < shard_count(dim); shard += factor)
            append(pieces, cut.at(shard).end, shard / factor);
    }
    return made(dim.extent, leading, std::move(pieces));
}

}  // namespace reshard
