#include "routing.hpp"

#include <algorithm>

namespace reshard {

TileNumber tile_number(const Layout& layout, Index device) {
    TileNumber number;
    for (const Dim& dim : layout.dims) number.push_back(value_of(dim.atoms, device));
    return number;
}

Box tile_of(const Layout& layout, const TileNumber& number) {
    Box box;
    for (std::size_t i = 0; i < number.size(); ++i) box.push_back(interval(layout.dims[i], number[i]));
    return box;
}

std::vector<TileNumber> touched_tiles(const Layout& layout, const Box& box) {
    if (count(box) == 0) return {};
    TileNumber first;
    TileNumber last;
    Index tiles = 1;
    for (std::size_t i = 0; i < box.size(); ++i) {
        first.push_back(box[i].begin / tile_extent(layout.dims[i]));
        last.push_back((box[i].end - 1) / tile_extent(layout.dims[i]));
        tiles *= last[i] - first[i] + 1;
    }
    std::vector<TileNumber> numbers;
    numbers.reserve(static_cast<std::size_t>(tiles));
    for (TileNumber at = first; tiles > 0; --tiles) {
        numbers.push_back(at);
        for (std::size_t i = at.size(); i-- > 0;) {
            if (++at[i] <= last[i]) break;
            at[i] = first[i];
        }
    }
    return numbers;
}

std::vector<Index> devices_of(const Layout& layout, const TileNumber& number, Index summand) {
    Index device = with_value(layout.unreduced, 0, summand);
    for (std::size_t i = 0; i < number.size(); ++i) device = with_value(layout.dims[i].atoms, device, number[i]);
    // Replicas differ in the unused digits; most major first makes them ascend.
    return group_of(complement(used_atoms(layout), device_count(layout)), device);
}

Index permute_partner(const Layout& mine, const Layout& theirs, Index device) {
    const TileNumber number = tile_number(mine, device);
    const Index which = summand(mine, device);
    const std::vector<Index> here = devices_of(mine, number, which);
    const std::vector<Index> there = devices_of(theirs, number, which);
    const auto holds = [](const std::vector<Index>& devices, Index one) {
        return std::ranges::binary_search(devices, one);
    };
    if (holds(there, device)) return device;
    const auto movers_before = std::ranges::count_if(here, [&](Index d) { return d < device && !holds(there, d); });
    Index place = movers_before;
    for (const Index other : there)
        if (!holds(here, other) && place-- == 0) return other;
    return device;
}

std::pair<Index, Index> Stripes::served(const Demand& demand, Index holder) const {
    const Index place = std::ranges::lower_bound(holders, holder) - holders.begin();
    const auto within = [&](Index offset) { return std::clamp<Index>(offset - demand.offset, 0, demand.elements); };
    return {within(place * part), within((place + 1) * part)};
}

Stripes stripes_of(const Layout& before, const Layout& after, const TileNumber& number, Index summand,
                   std::vector<Index> holders) {
    Stripes stripes{std::move(holders), {}, 0};
    const Box source = tile_of(before, number);
    for (const TileNumber& wanted : touched_tiles(after, source)) {
        const Index elements = count(intersect(source, tile_of(after, wanted)));
        if (elements == 0) continue;
        for (const Index device : devices_of(after, wanted, summand))
            if (!std::ranges::binary_search(stripes.holders, device)) stripes.demands.push_back({device, 0, elements});
    }
    std::ranges::sort(stripes.demands, {}, &Demand::device);
    Index total = 0;
    for (Demand& demand : stripes.demands) {
        demand.offset = total;
        total += demand.elements;
    }
    stripes.part = ceil_divide(total, static_cast<Index>(stripes.holders.size()));
    return stripes;
}

std::vector<Share> shares_of(const Layout& before, const Layout& after, const TileNumber& number, Index summand,
                             const std::vector<Index>& holders, Index device) {
    const Index all = count(intersect(tile_of(before, number), tile(after, device)));
    if (holders.size() == 1) return {{holders.front(), 0, all}};
    const Stripes stripes = stripes_of(before, after, number, summand, holders);
    const auto mine = std::ranges::lower_bound(stripes.demands, device, {}, &Demand::device);
    std::vector<Share> shares;
    for (Index place = mine->offset / stripes.part; place * stripes.part < mine->offset + all; ++place) {
        const Index holder = stripes.holders[static_cast<std::size_t>(place)];
        const auto [begin, end] = stripes.served(*mine, holder);
        shares.push_back({holder, begin, end});
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

std::vector<Box> boxes_of_range(const Box& box, Index begin, Index end) {
    std::vector<Box> boxes;
    Box scratch = box;
    append_range(scratch, 0, begin, end, boxes);
    return boxes;
}

}  // namespace reshard
