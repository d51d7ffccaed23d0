// Boxes, tiles as products of sides, and where a tile lies in memory.
#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "reshard/planner/storage.hpp"

namespace reshard {

Index count(const Box& box) {
    Index elements = 1;
    for (const Interval& side : box) elements *= side.size();
    return elements;
}

Box intersect(const Box& a, const Box& b) {
    Box common(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        const Index begin = std::max(a[i].begin, b[i].begin);
        common[i] = {begin, std::max(begin, std::min(a[i].end, b[i].end))};
    }
    return common;
}

Index Side::size() const {
    Index indices = 0;
    for (const Interval& interval : intervals) indices += interval.size();
    return indices;
}

Index Side::at(Index own) const {
    assert(0 <= own && own < size());
    for (const Interval& interval : intervals) {
        if (own < interval.size()) return interval.begin + own;
        own -= interval.size();
    }
    return -1;
}

Index count(const Tile& tile) {
    Index elements = 1;
    for (const Side& side : tile) elements *= side.size();
    return elements;
}

Side intersect(const Side& a, const Side& b) {
    Side common;
    for (std::size_t i = 0, j = 0; i < a.intervals.size() && j < b.intervals.size();) {
        const Interval& one = a.intervals[i];
        const Interval& other = b.intervals[j];
        const Interval both{std::max(one.begin, other.begin), std::min(one.end, other.end)};
        if (both.begin < both.end) common.intervals.push_back(both);
        ++(one.end < other.end ? i : j);
    }
    return common;
}

Side part_of(const Side& side, Interval own) {
    Side part;
    Index before = 0;
    for (const Interval& interval : side.intervals) {
        const Index begin = std::max(own.begin - before, Index{0});
        const Index end = std::min(own.end - before, interval.size());
        if (begin < end) part.intervals.push_back({interval.begin + begin, interval.begin + end});
        before += interval.size();
    }
    return part;
}

Tile intersect(const Tile& a, const Tile& b) {
    if (a.size() != b.size()) return nothing(std::min(a.size(), b.size()));
    Tile common;
    common.reserve(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) common.push_back(intersect(a[i], b[i]));
    return common;
}

Tile nothing(std::size_t rank) { return Tile(std::max<std::size_t>(rank, 1)); }

namespace {

// The interval of a side that contains an interval, and the number of indices of the side before it.
struct Within {
    bool found = false;
    Index before = 0;
};

Within within(const Side& side, const Interval& part) {
    Within place;
    for (const Interval& interval : side.intervals) {
        if (interval.begin <= part.begin && part.end <= interval.end)
            return {true, place.before + part.begin - interval.begin};
        place.before += interval.size();
    }
    return place;
}

}  // namespace

bool contains(const Tile& tile, const Box& box) {
    if (tile.size() != box.size()) return false;
    for (std::size_t i = 0; i < box.size(); ++i)
        if (box[i].begin < box[i].end && !within(tile[i], box[i]).found) return false;
    return true;
}

std::vector<Box> boxes_of(const Tile& tile) {
    if (count(tile) == 0) return {};
    std::vector<std::size_t> at(tile.size(), 0);
    std::vector<Box> boxes;
    while (true) {
        Box box;
        box.reserve(tile.size());
        for (std::size_t i = 0; i < tile.size(); ++i) box.push_back(tile[i].intervals[at[i]]);
        boxes.push_back(std::move(box));
        std::size_t i = tile.size();
        while (i > 0 && ++at[i - 1] == tile[i - 1].intervals.size()) at[--i] = 0;
        if (i == 0) return boxes;
    }
}

Box as_box(const Tile& tile) {
    assert(std::ranges::all_of(tile, [](const Side& side) { return side.intervals.size() <= 1; }));
    Box box;
    box.reserve(tile.size());
    for (const Side& side : tile) box.push_back(side.intervals.empty() ? Interval{} : side.intervals.front());
    return box;
}

Tile as_tile(const Box& box) {
    Tile tile(box.size());
    for (std::size_t i = 0; i < box.size(); ++i)
        if (box[i].size() > 0) tile[i].intervals.push_back(box[i]);
    return tile;
}

std::vector<Index> extents(const Tile& tile) {
    std::vector<Index> sizes;
    sizes.reserve(tile.size());
    for (const Side& side : tile) sizes.push_back(side.size());
    return sizes;
}

Storage row_major(const Tile& tile) {
    Storage storage{0, std::vector<Index>(tile.size(), 1)};
    for (std::size_t i = tile.size(); i-- > 1;) storage.strides[i - 1] = storage.strides[i] * tile[i].size();
    return storage;
}

Storage column_major(const Tile& tile) {
    Storage storage{0, std::vector<Index>(tile.size(), 1)};
    for (std::size_t i = 1; i < tile.size(); ++i) storage.strides[i] = storage.strides[i - 1] * tile[i - 1].size();
    return storage;
}

Result<Index> extent_of(const Storage& storage, const Tile& tile) {
    if (storage.strides.size() != tile.size())
        return fail(Code::mismatch, fmt::format("the storage has {} strides, the tile {} dimensions",
                                                storage.strides.size(), tile.size()));
    if (storage.offset < 0) return fail(Code::mismatch, "the storage has a negative offset");
    Index last = storage.offset;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        if (storage.strides[i] < 0) return fail(Code::mismatch, "the storage has a negative stride");
        const Index indices = tile[i].size();
        if (indices == 0) return 0;
        const auto step = checked_multiply(storage.strides[i], indices - 1);
        const auto sum = step ? checked_add(last, *step) : std::nullopt;
        if (!sum) return fail(Code::overflow, "the storage reaches past 64 bits");
        last = *sum;
    }
    const auto end = checked_add(last, 1);
    if (!end) return fail(Code::overflow, "the storage reaches past 64 bits");
    return *end;
}

Index offset_of(const Storage& storage, const Tile& tile, const Box& box) {
    assert(contains(tile, box));
    Index offset = storage.offset;
    for (std::size_t i = 0; i < box.size(); ++i) offset += within(tile[i], box[i]).before * storage.strides[i];
    return offset;
}

}  // namespace reshard
