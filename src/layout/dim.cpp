// How one dimension is cut into shards: by ceil-div, or in pieces.
#include <algorithm>
#include <cassert>

#include "reshard/layout.hpp"

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

std::vector<Dim::Piece> even_pieces(Index extent, Index shards) {
    std::vector<Dim::Piece> pieces;
    for (Index shard = 0; extent > 0 && (pieces.empty() || pieces.back().end < extent); ++shard)
        append(pieces, even_interval(extent, shards, shard).end, shard);
    return pieces;
}

// How many indices each shard with a piece has, shards in order: there may be far more without.
std::vector<Index> shares_of(const Dim& dim) {
    std::vector<Dim::Piece> sizes;  // by shard
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        sizes.push_back({piece.end - begin, piece.shard});
        begin = piece.end;
    }
    std::ranges::stable_sort(sizes, {}, &Dim::Piece::shard);
    std::vector<Index> shares;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (i > 0 && sizes[i].shard == sizes[i - 1].shard)
            shares.back() += sizes[i].end;
        else
            shares.push_back(sizes[i].end);
    return shares;
}

Dim made(Index extent, AtomList atoms, std::vector<Dim::Piece> pieces) {
    Dim dim(extent, std::move(atoms), std::move(pieces));
    dim.pieces = canonical_pieces(dim);
    return dim;
}

}  // namespace

Index shard_count(const Dim& dim) { return combinations(dim.atoms); }

Interval interval(const Dim& dim, Index shard) {
    assert(dim.pieces.empty());
    return even_interval(dim.extent, shard_count(dim), shard);
}

std::vector<Dim::Piece> pieces_of(const Dim& dim) {
    return dim.pieces.empty() ? even_pieces(dim.extent, shard_count(dim)) : dim.pieces;
}

Index tile_extent(const Dim& dim) {
    if (dim.pieces.empty()) return ceil_divide(dim.extent, shard_count(dim));
    const std::vector<Index> shares = shares_of(dim);
    return *std::max_element(shares.begin(), shares.end());
}

Index tile_extent_min(const Dim& dim) {
    if (dim.pieces.empty()) return interval(dim, shard_count(dim) - 1).size();
    const std::vector<Index> shares = shares_of(dim);
    if (static_cast<Index>(shares.size()) < shard_count(dim)) return 0;
    return *std::min_element(shares.begin(), shares.end());
}

bool divides(const Dim& dim) { return dim.pieces.empty() && dim.extent % shard_count(dim) == 0; }

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
    Index begin = 0;
    for (const Dim::Piece& piece : pieces_of(dim)) {
        all[static_cast<std::size_t>(piece.shard)].intervals.push_back({begin, piece.end});
        begin = piece.end;
    }
    return all;
}

std::vector<Dim::Piece> canonical_pieces(const Dim& dim) {
    std::vector<Dim::Piece> merged;
    for (const Dim::Piece& piece : dim.pieces) append(merged, piece.end, piece.shard);
    // Shards of ceil-div ascend and each has one piece: only then is a longer list worth comparing.
    const bool ascend = std::is_sorted(merged.begin(), merged.end(),
                                       [](const Dim::Piece& a, const Dim::Piece& b) { return a.shard < b.shard; });
    if (ascend && merged == even_pieces(dim.extent, shard_count(dim))) merged.clear();
    return merged;
}

Dim cut_by_shares(AtomList atoms, std::span<const Index> shares) {
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

Dim cut_in_blocks(Index extent, AtomList atoms, Index block) {
    assert(block >= 1);
    const Index shards = combinations(atoms);
    std::vector<Dim::Piece> pieces;
    for (Index begin = 0, number = 0; begin < extent; begin += block, ++number)
        append(pieces, extent - begin > block ? begin + block : extent, number % shards);
    return made(extent, std::move(atoms), std::move(pieces));
}

Dim cut_by_turns(Index extent, AtomList atoms, std::span<const Index> factors) {
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
    std::vector<Dim::Piece> pieces;
    for (const Dim::Piece& piece : pieces_of(dim)) append(pieces, piece.end, piece.shard / factor);
    return made(dim.extent, leading, std::move(pieces));
}

}  // namespace reshard
