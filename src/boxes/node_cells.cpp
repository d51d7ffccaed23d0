#include "src/boxes/node_cells.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "src/base/odometer.hpp"
#include "src/base/try.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

constexpr Index pairs_max = Index{1} << 24;

// The tile of each device in both layouts.
struct Tiles {
    std::vector<Tile> source;
    std::vector<Tile> target;
};

Tiles tiles_of(const Layout& source, const Layout& target, Index devices) {
    Tiles tiles;
    for (Index device = 0; device < devices; ++device) {
        tiles.source.push_back(tile(source, device));
        tiles.target.push_back(tile(target, device));
    }
    return tiles;
}

// Intervals of one dimension that no tile cuts, ascending.
std::vector<Interval> uncut(const Tiles& tiles, std::size_t dim) {
    std::set<Index> borders;
    for (const auto* of_layout : {&tiles.source, &tiles.target})
        for (const Tile& one : *of_layout) {
            if (count(one) == 0) continue;
            for (const Interval& interval : one[dim].intervals) borders.insert({interval.begin, interval.end});
        }
    std::vector<Interval> intervals;
    for (auto border = borders.begin(); border != borders.end() && std::next(border) != borders.end(); ++border)
        intervals.push_back({*border, *std::next(border)});
    return intervals;
}

std::vector<Index> devices_with(const std::vector<Tile>& tiles, const Box& box) {
    std::vector<Index> devices;
    for (Index device = 0; device < std::ssize(tiles); ++device) {
        const Tile& one = tiles[static_cast<std::size_t>(device)];
        if (count(one) > 0 && contains(one, box)) devices.push_back(device);
    }
    return devices;
}

// Boxes that touch along the last dimension become one, if no tile has a gap or a border between them.
void append(NodeCells& cells, const Box& box, bool joins) {
    cells.elements += count(box);
    if (joins && !cells.boxes.empty()) {
        Box& last = cells.boxes.back();
        if (std::equal(last.begin(), last.end() - 1, box.begin()) && last.back().end == box.back().begin) {
            last.back().end = box.back().end;
            return;
        }
    }
    cells.boxes.push_back(box);
}

Result<void> check_pairs(Index pairs) {
    if (pairs <= pairs_max) return {};
    return fail(Code::unsupported, fmt::format("a move through nodes looks at {} pairs of a device and a part of the "
                                               "array; at most {} are supported",
                                               pairs, pairs_max));
}

// The least number of parts, known before any tile is.
Index parts_at_least(const Layout& source, const Layout& target) {
    Index parts = 1;
    for (std::size_t dim = 0; dim < source.dims.size(); ++dim) {
        const Index smaller = std::min(block_extent(source.dims[dim]), block_extent(target.dims[dim]));
        if (smaller > 0) parts = saturating_multiply(parts, ceil_divide(source.dims[dim].extent, smaller));
    }
    return parts;
}

}  // namespace

Result<std::vector<NodeCells>> cells_of(const Layout& source, const Layout& target, Index devices) {
    RESHARD_CHECK(check_pairs(saturating_multiply(devices, parts_at_least(source, target))));
    const Tiles tiles = tiles_of(source, target, devices);
    std::vector<std::vector<Interval>> sides;
    std::vector<Index> shape;
    Index pairs = devices;
    for (std::size_t dim = 0; dim < source.dims.size(); ++dim) {
        sides.push_back(uncut(tiles, dim));
        shape.push_back(std::ssize(sides.back()));
        pairs = saturating_multiply(pairs, shape.back());
    }
    RESHARD_CHECK(check_pairs(pairs));
    // A box of two cells lies within one interval of each tile if the tiles have whole blocks there.
    const auto whole = [](const Tile& one) { return count(one) == 0 || one.back().intervals.size() <= 1; };
    const bool joins =
        !sides.empty() && std::ranges::all_of(tiles.source, whole) && std::ranges::all_of(tiles.target, whole);
    std::map<std::pair<std::vector<Index>, std::vector<Index>>, NodeCells> classes;
    RESHARD_CHECK(for_each_place(shape, [&](std::span<const Index> number) {
        Box box;
        for (std::size_t dim = 0; dim < sides.size(); ++dim)
            box.push_back(sides[dim][static_cast<std::size_t>(number[dim])]);
        auto wanters = devices_with(tiles.target, box);
        if (!wanters.empty()) append(classes[{devices_with(tiles.source, box), std::move(wanters)}], box, joins);
        return Result<void>();
    }));
    std::vector<NodeCells> all;
    for (auto& [key, cells] : classes) {
        cells.holders = key.first;
        cells.wanters = key.second;
        all.push_back(std::move(cells));
    }
    return all;
}

std::vector<Box> boxes_of_range(const NodeCells& cells, Index begin, Index end) {
    std::vector<Box> boxes;
    Index first = 0;
    for (const Box& box : cells.boxes) {
        const Index size = count(box);
        const Index from = std::max<Index>(begin - first, 0);
        const Index to = std::min(end - first, size);
        for (const Tile& part : tiles_of_range(as_tile(box), from, to)) boxes.push_back(as_box(part));
        first += size;
    }
    return boxes;
}

}  // namespace reshard
