#include "src/schedule/wanted.hpp"

#include <algorithm>

#include "src/base/try.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

// The owner of a tile that serves `device`.
Index owner_for(const Layout& owners, const TileNumber& number, Index device) {
    Index position = *position_of(owners.mesh, device);
    for (std::size_t k = 0; k < number.size(); ++k) position = with_value(owners.dims[k].atoms, position, number[k]);
    return device_at(owners.mesh, position);
}

// The devices with this tile, in the order of their positions.
std::vector<Index> devices_with(const Layout& layout, const TileNumber& number) {
    Index position = 0;
    for (std::size_t k = 0; k < number.size(); ++k) position = with_value(layout.dims[k].atoms, position, number[k]);
    std::vector<Index> devices = group_of(complement(used_atoms(layout), device_count(layout)), position);
    for (Index& device : devices) device = device_at(layout.mesh, device);
    return devices;
}

void append(std::vector<Transfer>& transfers, Index peer, const Tile& part) {
    for (Box& box : boxes_of(part)) transfers.push_back({peer, std::move(box)});
}

Wrap opposite(Wrap wrap) {
    for (Index& one : wrap) one = -one;
    return wrap;
}

Tile whole(const Layout& layout) {
    Tile all(layout.dims.size());
    for (std::size_t k = 0; k < all.size(); ++k)
        if (layout.dims[k].extent > 0) all[k].intervals.push_back({0, layout.dims[k].extent});
    return all;
}

// The elements of blocks whose halo may have a cell of `cells`.
Tile near(const HaloLayout& wanted, Tile cells) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
        const Halo& halo = wanted.halos[k];
        for (Interval& one : cells[k].intervals) {
            one.begin = std::max<Index>(one.begin - halo.after, 0);
            one.end = std::min(one.end + halo.before, wanted.owned.dims[k].extent);
        }
        std::erase_if(cells[k].intervals, [](const Interval& one) { return one.begin >= one.end; });
    }
    return cells;
}

// Cells from 0 on: a periodic dimension is lifted by a multiple of its extent.
std::vector<Box> wanted_cells(const HaloLayout& wanted, Index device) {
    Tile cells = held_cells(wanted, device);
    if (count(cells) == 0) return {};
    for (std::size_t k = 0; k < cells.size(); ++k) {
        const Index extent = wanted.owned.dims[k].extent;
        const Index lift = wanted.halos[k].periodic ? ceil_divide(wanted.halos[k].before, extent) * extent : 0;
        for (Interval& one : cells[k].intervals) one = {one.begin + lift, one.end + lift};
    }
    return boxes_of(cells);
}

// The transfers of one wrap between ranks, as boxes of elements.
void append_elements(std::vector<Transfer>& transfers, std::vector<Transfer> cells, Index rank, const Layout& layout,
                     const Wrap& wrap) {
    for (Transfer& one : cells) {
        if (one.peer == rank) continue;
        for (std::size_t k = 0; k < wrap.size(); ++k) {
            const Index down = wrap[k] * layout.dims[k].extent;
            one.box[k] = {one.box[k].begin - down, one.box[k].end - down};
        }
        transfers.push_back(std::move(one));
    }
}

bool begins_before(const Side& side, Index index) {
    return !side.intervals.empty() && side.intervals.front().begin < index;
}

bool ends_after(const Side& side, Index index) { return !side.intervals.empty() && side.intervals.back().end > index; }

}  // namespace

std::vector<Wrap> wraps_of(const Layout& owners, const HaloLayout& wanted, Index rank) {
    const Tile own = tile(owners, rank), cells = held_cells(wanted, rank);
    std::vector<Wrap> wraps = {{}};
    for (std::size_t k = 0; k < wanted.halos.size(); ++k) {
        const Halo& halo = wanted.halos[k];
        const Index extent = owners.dims[k].extent;
        // A rank receives beyond a border that its cells cross, and sends what lies near the other border.
        const bool below = halo.before > 0 && (begins_before(cells[k], 0) || ends_after(own[k], extent - halo.before));
        const bool above = halo.after > 0 && (ends_after(cells[k], extent) || begins_before(own[k], halo.after));
        std::vector<Wrap> longer;
        for (const Wrap& wrap : wraps) {
            for (const Index one : {-1, 0, 1}) {
                if (one != 0 && (!halo.periodic || !(one < 0 ? below : above))) continue;
                longer.push_back(wrap);
                longer.back().push_back(one);
            }
        }
        wraps = std::move(longer);
    }
    return wraps;
}

Tile moved(Tile tile, const Layout& layout, const Wrap& wrap) {
    for (std::size_t k = 0; k < wrap.size(); ++k) {
        const Index up = wrap[k] * layout.dims[k].extent;
        for (Interval& one : tile[k].intervals) one = {one.begin + up, one.end + up};
    }
    return tile;
}

std::vector<Transfer> wanted_receives(const Layout& owners, const HaloLayout& wanted, Index rank, const Wrap& wrap) {
    std::vector<Transfer> receives;
    const Tile cells = distinct_cells(wanted, rank);
    if (count(cells) == 0) return receives;
    const Tile elements = intersect(moved(cells, owners, opposite(wrap)), whole(owners));
    for (const TileNumber& number : touched_tiles(owners, elements)) {
        const Tile part = intersect(tile_of(owners, number), elements);
        if (count(part) > 0) append(receives, owner_for(owners, number, rank), moved(part, owners, wrap));
    }
    return receives;
}

std::vector<Transfer> wanted_sends(const Layout& owners, const HaloLayout& wanted, Index rank, const Wrap& wrap) {
    std::vector<Transfer> sends;
    const Tile own = tile(owners, rank);
    if (count(own) == 0) return sends;
    const TileNumber number = tile_number(owners, rank);
    const Tile cells = moved(own, owners, wrap);
    for (const TileNumber& near_by : touched_tiles(wanted.owned, near(wanted, cells))) {
        for (const Index device : devices_with(wanted.owned, near_by)) {
            if (device == rank || owner_for(owners, number, device) != rank) continue;
            const Tile part = intersect(cells, distinct_cells(wanted, device));
            if (count(part) > 0) append(sends, device, part);
        }
    }
    return sends;
}

Result<OwnedBoxes> owned_boxes(const Layout& owners, const HaloLayout& wanted) {
    const Index ranks = world_size(owners.mesh);
    RESHARD_CHECK(check_certified_ranks(ranks));
    OwnedBoxes boxes{shape(owners), true, false, {}};
    for (Index rank = 0; rank < ranks; ++rank) {
        MemberBoxes& member = boxes.ranks.emplace_back();
        member.owns = boxes_of(tile(owners, rank));
        member.wants = wanted_cells(wanted, rank);
        for (const Wrap& wrap : wraps_of(owners, wanted, rank)) {
            append_elements(member.receives, wanted_receives(owners, wanted, rank, wrap), rank, owners, wrap);
            append_elements(member.sends, wanted_sends(owners, wanted, rank, wrap), rank, owners, wrap);
        }
    }
    return boxes;
}

}  // namespace reshard
