#include "src/schedule/routing.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "src/layout/regular_cut.hpp"

namespace reshard {

TileNumber tile_number(const Layout& layout, Index device) {
    assert(position_of(layout.mesh, device));
    const Index position = *position_of(layout.mesh, device);
    TileNumber number;
    number.reserve(layout.dims.size());
    for (const Dim& dim : layout.dims) number.push_back(value_of(dim.atoms, position));
    return number;
}

Tile tile_of(const Layout& layout, const TileNumber& number) {
    Tile tile;
    for (std::size_t i = 0; i < number.size(); ++i) tile.push_back(side(layout.dims[i], number[i]));
    return tile;
}

std::vector<Index> touched_shards(const Dim& dim, const Side& side) {
    std::vector<Index> shards;
    if (dim.pieces.empty()) {
        const RegularCut cut(dim);
        for (const Interval& interval : side.intervals) {
            const Index next = shards.empty() ? 0 : shards.back() + 1;
            const Index first = std::max(cut.shard_of(interval.begin), next), last = cut.shard_of(interval.end - 1);
            const std::size_t before = shards.size();
            shards.resize(before + static_cast<std::size_t>(std::max<Index>(last - first + 1, 0)));
            std::iota(shards.begin() + static_cast<std::ptrdiff_t>(before), shards.end(), first);
        }
        return shards;
    }
    Index begin = 0;
    auto interval = side.intervals.begin();
    for (const Dim::Piece& piece : dim.pieces) {
        while (interval != side.intervals.end() && interval->end <= begin) ++interval;
        if (interval != side.intervals.end() && interval->begin < piece.end) shards.push_back(piece.shard);
        begin = piece.end;
    }
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    return shards;
}

std::vector<TileNumber> touched_tiles(const Layout& layout, const Tile& tile) {
    if (count(tile) == 0) return {};
    std::vector<TileNumber> numbers = {{}};
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const std::vector<Index> shards = touched_shards(layout.dims[i], tile[i]);
        std::vector<TileNumber> longer;
        longer.reserve(numbers.size() * shards.size());
        for (const TileNumber& number : numbers)
            for (const Index shard : shards) {
                longer.push_back(number);
                longer.back().push_back(shard);
            }
        numbers = std::move(longer);
    }
    return numbers;
}

Routing::Routing(const Layout& before, const Layout& after, Index rank, const Network& network,
                 std::span<const Index> lost)
    : before_(before),
      after_(after),
      rank_(rank),
      network_(network),
      lost_(lost),
      team_(lost.empty() ? team_atoms(before, after, network) : AtomList()) {}

std::vector<Index> Routing::holders_of(const TileNumber& number, Index summand) const {
    std::vector<Index> holders = devices_of(before_, number, summand);
    std::erase_if(holders, [&](Index device) { return std::ranges::binary_search(lost_, device); });
    return holders;
}

std::vector<Index> Routing::devices_of(const Layout& layout, const TileNumber& number, Index summand) const {
    Index position = team_.empty() ? 0 : with_value(team_, 0, value_of(team_, *position_of(layout.mesh, rank_)));
    position = with_value(layout.unreduced, position, summand);
    for (std::size_t i = 0; i < number.size(); ++i) position = with_value(layout.dims[i].atoms, position, number[i]);
    // Replicas differ in the unused digits. The most major digit first makes them ascend.
    AtomList fixed = used_atoms(layout);
    fixed.insert(fixed.end(), team_.begin(), team_.end());
    std::vector<Index> devices = group_of(complement(fixed, device_count(layout)), position);
    if (layout.mesh.devices.in_order()) return devices;
    for (Index& device : devices) device = device_at(layout.mesh, device);
    std::ranges::sort(devices);
    return devices;
}

Index Routing::partner(const Layout& mine, const Layout& theirs) const {
    const TileNumber number = tile_number(mine, rank_);
    const Index which = summand(mine, rank_);
    for (const auto& [one, other] :
         partners(network_, devices_of(mine, number, which), devices_of(theirs, number, which)))
        if (one == rank_) return other;
    return rank_;
}

std::vector<Stripes> Routing::stripes_of(const TileNumber& number, Index summand, std::vector<Index> holders) const {
    std::vector<Demand> demands;
    const Tile source = tile_of(before_, number);
    for (const TileNumber& wanted : touched_tiles(after_, source)) {
        const Index elements = count(intersect(source, tile_of(after_, wanted)));
        if (elements == 0) continue;
        for (const Index device : devices_of(after_, wanted, summand))
            if (!std::ranges::binary_search(holders, device)) demands.push_back({device, 0, elements});
    }
    std::ranges::sort(demands, {}, &Demand::device);
    return reshard::stripes_of(network_, std::move(holders), std::move(demands));
}

std::vector<Share> Routing::shares_of(const TileNumber& number, Index summand,
                                      const std::vector<Index>& holders) const {
    const Index all = count(intersect(tile_of(before_, number), tile(after_, rank_)));
    if (holders.size() == 1) return {{holders.front(), 0, all}};
    std::vector<Share> shares;
    for (const Stripes& stripes : stripes_of(number, summand, holders)) {
        const auto mine = std::ranges::lower_bound(stripes.demands, rank_, {}, &Demand::device);
        if (mine == stripes.demands.end() || mine->device != rank_) continue;
        stripes.serve(*mine, [&](std::size_t place, Index begin, Index end) {
            shares.push_back({stripes.holders[place], begin, end});
        });
    }
    return shares;
}

namespace {

// Appends the boxes of elements [begin, end) of `box` from dimension `dim` on; earlier dimensions are one index wide.
void append_range(Box& box, std::size_t dim, Index begin, Index end, std::vector<Box>& boxes) {
    if (begin >= end) return;
    if (dim == box.size()) {
        boxes.push_back(box);
        return;
    }
    const Interval whole = box[dim];
    Index row = 1;  // elements per index of this dimension
    for (std::size_t i = dim + 1; i < box.size(); ++i) row *= box[i].size();
    const auto rows = [&](Index first, Index last) {
        box[dim] = {whole.begin + first, whole.begin + last};
        if (first < last) boxes.push_back(box);
    };
    const auto part = [&](Index index, Index from, Index to) {
        box[dim] = {whole.begin + index, whole.begin + index + 1};
        append_range(box, dim + 1, from, to, boxes);
    };
    const Index first_full = ceil_divide(begin, row);
    const Index last_full = end / row;
    if (first_full > last_full) {
        part(last_full, begin - last_full * row, end - last_full * row);
    } else {
        if (begin < first_full * row) part(first_full - 1, begin - (first_full - 1) * row, row);
        rows(first_full, last_full);
        if (last_full * row < end) part(last_full, 0, end - last_full * row);
    }
    box[dim] = whole;
}

}  // namespace

std::vector<Tile> tiles_of_range(const Tile& tile, Index begin, Index end) {
    if (begin >= end) return {};
    if (begin == 0 && end == count(tile)) return {tile};
    // Treats every side as one interval, counted in its own indices.
    Box own;
    for (const Side& side : tile) own.push_back({0, side.size()});
    std::vector<Box> ranges;
    append_range(own, 0, begin, end, ranges);
    std::vector<Tile> tiles;
    for (const Box& range : ranges) {
        Tile& part = tiles.emplace_back();
        for (std::size_t i = 0; i < tile.size(); ++i) part.push_back(part_of(tile[i], range[i]));
    }
    return tiles;
}

}  // namespace reshard
