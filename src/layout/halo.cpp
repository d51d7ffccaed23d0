// The cells that a device holds around its block.
#include "src/layout/halo_sides.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {

namespace {

bool is_empty(const Halo& halo) { return halo.before == 0 && halo.after == 0; }

// True if some shard has several blocks.
bool is_scattered(const Dim& dim) {
    std::vector<Index> owners;
    for (const Dim::Piece& piece : dim.pieces) owners.push_back(piece.shard);
    std::ranges::sort(owners);
    return std::ranges::adjacent_find(owners) != owners.end();
}

Result<void> validate(const Dim& dim, const Halo& halo, std::size_t number) {
    if (halo.before < 0 || halo.after < 0)
        return fail(Code::layout, fmt::format("dimension {} has a halo of ({}, {}) cells; at least 0 are wanted",
                                              number, halo.before, halo.after));
    if (is_empty(halo)) return {};
    if (is_scattered(dim))
        return fail(Code::unsupported, fmt::format("dimension {} has a halo and gives one shard several blocks; one "
                                                   "block for each shard is wanted",
                                                   number));
    const Index most = saturating_multiply(dim.extent, periodic_halo_max);
    if (halo.periodic && dim.extent > 0 && std::max(halo.before, halo.after) > most)
        return fail(Code::unsupported,
                    fmt::format("dimension {} has a periodic halo of ({}, {}) cells; at most {} times its extent of {} "
                                "are supported",
                                number, halo.before, halo.after, periodic_halo_max, dim.extent));
    return {};
}

// The block with its halo, inside the array or, if it is periodic, in Z.
Interval widened(const Dim& dim, const Halo& halo, const Interval& block) {
    const Interval wide{block.begin - halo.before, block.end + halo.after};
    if (halo.periodic) return wide;
    return {std::max<Index>(wide.begin, 0), std::min(wide.end, dim.extent)};
}

// `wide` cut down to one cell for each element. It keeps the block, and prefers cells before it.
Interval distinct(const Dim& dim, const Interval& block, const Interval& wide) {
    if (wide.size() <= dim.extent) return wide;
    const Index begin = std::max(wide.begin, block.end - dim.extent);
    return {begin, begin + dim.extent};
}

using Widen = Interval(const Dim&, const Halo&, const Interval& block);

void widen_side(const Dim& dim, const Halo& halo, Widen& widen, Side& side) {
    if (is_empty(halo) || side.intervals.empty()) return;
    Interval& block = side.intervals.front();
    block = widen(dim, halo, block);
}

Side side_of(const Dim& dim, const Halo& halo, Index shard, Widen& widen) {
    Side held = side(dim, shard);
    widen_side(dim, halo, widen, held);
    return held;
}

Tile cells(const HaloLayout& layout, Index device, Widen& widen) {
    Tile held = tile(layout.owned, device);
    if (count(held) == 0) return held;
    for (std::size_t k = 0; k < layout.halos.size(); ++k)
        widen_side(layout.owned.dims[k], layout.halos[k], widen, held[k]);
    return held;
}

// In each dimension: where in the array the interval that `choose` makes of the block lies, counted from the first
// cell.
template <class Choose>
Box place_in_array(const HaloLayout& layout, Index device, const Choose& choose) {
    const Tile block = tile(layout.owned, device);
    Box place(layout.halos.size());
    if (count(block) == 0) return place;
    for (std::size_t k = 0; k < place.size(); ++k) {
        const Halo& halo = layout.halos[k];
        place[k] = {halo.before, halo.before + block[k].size()};
        if (is_empty(halo)) continue;
        const Interval own = block[k].intervals.front();
        const Interval chosen = choose(layout.owned.dims[k], halo, own);
        const Index first = own.begin - halo.before;
        place[k] = {chosen.begin - first, chosen.end - first};
    }
    return place;
}

}  // namespace

Result<void> validate(const HaloLayout& layout) {
    RESHARD_CHECK(validate(layout.owned));
    if (!layout.owned.unreduced.empty())
        return fail(Code::unsupported, "a layout with halos has summands; reduce them first");
    if (layout.halos.size() != layout.owned.dims.size())
        return fail(Code::layout, fmt::format("{} halos for {} dimensions; one for each is wanted", layout.halos.size(),
                                              layout.owned.dims.size()));
    Index cells = size_of(layout.owned.dtype);
    for (std::size_t k = 0; k < layout.halos.size(); ++k) {
        const Dim& dim = layout.owned.dims[k];
        const Halo& halo = layout.halos[k];
        RESHARD_CHECK(validate(dim, halo, k));
        const Index side = saturating_add(saturating_add(halo.before, halo.after), std::max<Index>(dim.extent, 1));
        const auto product = checked_multiply(cells, side);
        if (side == index_max || !product)
            return fail(Code::overflow, "a tile and its halo have more bytes than 64 bits can count");
        cells = *product;
    }
    return {};
}

Interval distinct_interval(const Dim& dim, const Halo& halo, const Interval& block) {
    return distinct(dim, block, widened(dim, halo, block));
}

Tile held_cells(const HaloLayout& layout, Index device) { return cells(layout, device, widened); }

Tile distinct_cells(const HaloLayout& layout, Index device) { return cells(layout, device, distinct_interval); }

Side held_side(const Dim& dim, const Halo& halo, Index shard) { return side_of(dim, halo, shard, widened); }

Side distinct_side(const Dim& dim, const Halo& halo, Index shard) {
    return side_of(dim, halo, shard, distinct_interval);
}

std::vector<Index> array_shape(const HaloLayout& layout, Index device) {
    std::vector<Index> shape = tile_shape(layout.owned, device);
    if (count(tile(layout.owned, device)) == 0) return std::vector<Index>(shape.size(), 0);
    for (std::size_t k = 0; k < shape.size(); ++k) shape[k] += layout.halos[k].before + layout.halos[k].after;
    return shape;
}

Box core_of(const HaloLayout& layout, Index device) {
    return place_in_array(layout, device, [](const Dim&, const Halo&, const Interval& block) { return block; });
}

Box filled_of(const HaloLayout& layout, Index device) { return place_in_array(layout, device, widened); }

Index received_elements(const HaloLayout& layout, Index device) {
    return count(distinct_cells(layout, device)) - count(tile(layout.owned, device));
}

}  // namespace reshard
