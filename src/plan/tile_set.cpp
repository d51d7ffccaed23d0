#include "src/plan/tile_set.hpp"

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
    const std::vector<Index>* sizes = nullptr;
    if (!dims.empty())
        sizes = held_ ? &contacts_[dims.back().dim].held_sizes : &contacts_[dims.back().dim].wanted_sizes;
    TileCount sum;
    before_.reserve(tiles.size() + 1);
    for (const Tile& tile : tiles) {
        before_.push_back(sum);
        sum.tiles += tile.times;
        if (sizes != nullptr)
            sum.elements += tile.times * (*sizes)[static_cast<std::size_t>(tile.code % dims.back().shards)];
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

std::span<const Met> TileSet::meetings(const CodeDim& dim, std::span<const Index> shards) const {
    const Contact& contact = contacts_[dim.dim];
    return (held_ ? contact.wanted : contact.held).of(shards[dim.dim]);
}

TileCount TileSet::count(std::size_t level, std::size_t begin, std::size_t end, Index base,
                         std::span<const Index> shards) const {
    if (level + 1 == codes_->dims().size()) return count_last(begin, end, base, shards);
    const CodeDim& dim = codes_->dims()[level];
    const std::span<const Met> list = meetings(dim, shards);
    TileCount sum;
    while (begin < end && !list.empty()) {
        const Index shard = (tiles_[begin].code - base) / dim.below;
        if (shard > list.back().tile) break;
        if (shard < list.front().tile) {
            begin = place_of(begin, end, base + list.front().tile * dim.below);
            continue;
        }
        const Index next = base + (shard + 1) * dim.below;
        const std::size_t stop = tiles_[end - 1].code < next ? end : place_of(begin, end, next);
        if (const Index indices = met_in(list, shard)) {
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
    const std::span<const Met> list = meetings(dim, shards);
    if (list.empty()) return {};
    TileCount sum;
    const auto add = [&](const Tile& tile, Index indices) {
        if (indices == 0) return;
        sum.elements += tile.times * indices;
        sum.tiles += tile.times;
    };
    const bool nested = contacts_[dim.dim].nested;
    if (end - begin <= few || (!nested && end - begin <= list.size())) {
        for (std::size_t i = begin; i < end; ++i) add(tiles_[i], met_in(list, tiles_[i].code - base));
        return sum;
    }
    if (!nested) {
        for (const Met& one : list) {
            begin = place_of(begin, end, base + one.tile);
            if (begin < end && tiles_[begin].code == base + one.tile) add(tiles_[begin], one.indices);
        }
        return sum;
    }
    // Only the first and the last may be met in part.
    begin = place_of(begin, end, base + list.front().tile);
    if (begin < end && tiles_[begin].code == base + list.front().tile) add(tiles_[begin++], list.front().indices);
    if (list.size() == 1) return sum;
    end = place_of(begin, end, base + list.back().tile + 1);
    if (begin < end && tiles_[end - 1].code == base + list.back().tile) add(tiles_[--end], list.back().indices);
    if (begin < end) {
        sum.elements += before_[end].elements - before_[begin].elements;
        sum.tiles += before_[end].tiles - before_[begin].tiles;
    }
    return sum;
}

}  // namespace reshard
