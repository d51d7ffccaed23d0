#include "src/notations/chunks.hpp"

#include <algorithm>

#include "reshard/planner/tile.hpp"

namespace reshard::notation {

namespace {

// Number i of `count` chunks of [0, size).
Interval chunk(Index size, Index count, Index i) {
    const Index length = ceil_divide(size, count);
    const Index begin = std::min(size, saturating_multiply(i, length));
    return {begin, std::min(size, saturating_add(begin, length))};
}

Side shard_of(const Side& whole, const Cutter& cutter, Index i) {
    const Index size = whole.size();
    Side shard;
    for (Index k = 0; k < cutter.split; ++k) {
        const Interval part = chunk(size, cutter.split, k);
        if (part.size() == 0) break;
        const Interval own = chunk(part.size(), cutter.shards, i);
        const Side held = part_of(whole, {part.begin + own.begin, part.begin + own.end});
        shard.intervals.insert(shard.intervals.end(), held.intervals.begin(), held.intervals.end());
    }
    return shard;
}

// A dimension whose shard `s` holds `held[s]`.
Dim dim_of(Index extent, AtomList atoms, const std::vector<Side>& held) {
    std::vector<std::pair<Interval, Index>> all;
    for (std::size_t s = 0; s < held.size(); ++s)
        for (const Interval& piece : held[s].intervals) all.emplace_back(piece, static_cast<Index>(s));
    std::ranges::sort(all, {}, [](const auto& entry) { return entry.first.begin; });
    Dim dim(extent, std::move(atoms));
    for (const auto& [piece, shard] : all) dim.pieces.push_back({piece.end, shard});
    make_canonical(dim);
    return dim;
}

}  // namespace

std::optional<std::vector<std::size_t>> order_said_by(const std::vector<Cutter>& cutters) {
    std::vector<std::size_t> order;  // of those from number `i` on that make more than one shard
    for (std::size_t i = cutters.size(); i-- > 0;) {
        Index before = 1;
        auto place = order.begin();
        while (before != cutters[i].split && place != order.end())
            before = saturating_multiply(before, cutters[*place++].shards);
        if (before != cutters[i].split) return std::nullopt;
        if (cutters[i].shards > 1) order.insert(place, i);
    }
    return order;
}

std::optional<Dim> cut_by(Index extent, const std::vector<Cutter>& cutters) {
    AtomList atoms;
    std::vector<Index> factors;
    Index shards = 1;
    Index pieces = 1;
    bool strided = false;
    for (const Cutter& cutter : cutters) {
        if (cutter.shards == 1) continue;
        atoms.push_back(cutter.atom);
        factors.push_back(cutter.shards);
        shards = saturating_multiply(shards, cutter.shards);
        const Index splits = std::min(cutter.split, std::max(extent, Index{1}));
        pieces = saturating_multiply(pieces, saturating_multiply(cutter.shards, splits));
        strided = strided || cutter.split > 1;
    }
    // One axis cuts by ceil-div; several do where everything divides.
    if (!strided && (factors.size() < 2 || extent % shards == 0)) return Dim(extent, canonical(std::move(atoms)));
    if (pieces > chunks_max) return std::nullopt;
    if (!strided) return chunked_per_axis(extent, canonical(std::move(atoms)), factors);
    std::vector<Side> held = {extent > 0 ? Side{{{0, extent}}} : Side{}};
    for (const Cutter& cutter : cutters) {
        std::vector<Side> finer;
        for (const Side& whole : held)
            for (Index i = 0; i < cutter.shards; ++i) finer.push_back(shard_of(whole, cutter, i));
        held = std::move(finer);
    }
    return dim_of(extent, canonical(std::move(atoms)), held);
}

}  // namespace reshard::notation
