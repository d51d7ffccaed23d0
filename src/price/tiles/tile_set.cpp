#include "src/price/tiles/tile_set.hpp"

#include <algorithm>

namespace reshard {

namespace {

constexpr std::size_t few = 8;  // tiles that are looked at one by one

}  // namespace

void TileSet::assign(const TileCodes& codes, std::span<const Tile> tiles) {
    codes_ = &codes;
    tiles_ = tiles;
    before_.clear();
    if (tiles.size() <= few) return;
    const std::span<const CodeDim> dims = codes.dims();
    const Contact* contact = dims.empty() ? nullptr : &contacts_[dims.back().dim];
    TileCount sum;
    before_.reserve(tiles.size() + 1);
    for (const Tile& tile : tiles) {
        before_.push_back(sum);
        sum.tiles += tile.times;
        if (contact == nullptr) continue;
        const Index shard = tile.code % dims.back().shards;
        sum.elements += tile.times * (held_ ? contact->held_size(shard) : contact->wanted_size(shard));
    }
    before_.push_back(sum);
}

std::size_t TileSet::place_of(std::size_t begin, std::size_t end, Index code) const {
    const Tiles part = tiles_.subspan(begin, end - begin);
    return begin + static_cast<std::size_t>(std::ranges::lower_bound(part, code, {}, &Tile::code) - part.begin());
}

TileCount TileSet::met(Index team, std::span<const Index> shards) const {
    const Index base = team * codes_->tiles();
    const Index last = base + codes_->tiles();
    std::size_t begin = 0;
    std::size_t end = tiles_.size();
    if (end == 0) return {};
    if (tiles_.front().code < base) begin = place_of(begin, end, base);
    if (tiles_.back().code >= last) end = place_of(begin, end, last);
    if (begin == end) return {};
    if (!codes_->dims().empty()) return count(0, begin, end, base, shards);
    return {tiles_[begin].times, tiles_[begin].times};
}

MetTiles TileSet::meetings(const CodeDim& dim, std::span<const Index> shards) const {
    const Contact& contact = contacts_[dim.dim];
    return held_ ? contact.held(shards[dim.dim]) : contact.wanted(shards[dim.dim]);
}

TileCount TileSet::count(std::size_t level, std::size_t begin, std::size_t end, Index base,
                         std::span<const Index> shards) const {
    if (level + 1 == codes_->dims().size()) return count_last(begin, end, base, shards);
    const CodeDim& dim = codes_->dims()[level];
    const MetTiles met = meetings(dim, shards);
    TileCount sum;
    while (begin < end && !met.empty()) {
        const Index shard = (tiles_[begin].code - base) / dim.below;
        if (shard > met.last()) break;
        if (shard < met.first()) {
            begin = place_of(begin, end, base + met.first() * dim.below);
            continue;
        }
        const Index next = base + (shard + 1) * dim.below;
        const std::size_t stop = tiles_[end - 1].code < next ? end : place_of(begin, end, next);
        if (const Index indices = met.met(shard)) {
            const TileCount rest = count(level + 1, begin, stop, base + shard * dim.below, shards);
            sum.elements += indices * rest.elements;
            sum.tiles += rest.tiles;
        }
        begin = stop;
    }
    return sum;
}

TileCount TileSet::count_last(std::size_t begin, std::size_t end, Index base, std::span<const Index> shards) const {
    const CodeDim& dim = codes_->dims().back();
    const MetTiles met = meetings(dim, shards);
    if (met.empty()) return {};
    TileCount sum;
    const auto add = [&](const Tile& tile, Index indices) {
        if (indices == 0) return;
        sum.elements += tile.times * indices;
        sum.tiles += tile.times;
    };
    const bool nested = contacts_[dim.dim].nested();
    if (end - begin <= few || (!nested && static_cast<Index>(end - begin) <= met.count())) {
        for (std::size_t i = begin; i < end; ++i) add(tiles_[i], met.met(tiles_[i].code - base));
        return sum;
    }
    if (!nested) {
        for (const Met& one : met.list()) {
            begin = place_of(begin, end, base + one.tile);
            if (begin < end && tiles_[begin].code == base + one.tile) add(tiles_[begin], one.indices);
        }
        return sum;
    }
    // Only the first and the last may be met in part.
    begin = place_of(begin, end, base + met.first());
    if (begin < end && tiles_[begin].code == base + met.first()) add(tiles_[begin++], met.met(met.first()));
    if (met.count() == 1) return sum;
    end = place_of(begin, end, base + met.last() + 1);
    if (begin < end && tiles_[end - 1].code == base + met.last()) add(tiles_[--end], met.met(met.last()));
    if (begin < end) {
        sum.elements += before_[end].elements - before_[begin].elements;
        sum.tiles += before_[end].tiles - before_[begin].tiles;
    }
    return sum;
}

}  // namespace reshard
