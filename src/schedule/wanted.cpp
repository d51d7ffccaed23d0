#include "src/schedule/wanted.hpp"

#include <algorithm>

#include "src/base/try.hpp"
#include "src/layout/halo_sides.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

// The position of the owner of a tile that serves `device`, which wants cells. A device that is no owner takes its
// place among the wanting devices, so that replicas share the work.
Index owner_position(const Layout& owners, const HaloLayout& wanted, const TileNumber& number, Index device) {
    Index position =
        position_of(owners.mesh, device).value_or(*position_of(wanted.owned.mesh, device) % device_count(owners.mesh));
    for (std::size_t k = 0; k < number.size(); ++k) position = with_value(owners.dims[k].atoms, position, number[k]);
    return position;
}

void append(std::vector<Transfer>& transfers, Index peer, const Tile& part) {
    if (std::ranges::all_of(part, [](const Side& side) { return side.intervals.size() == 1; })) {
        transfers.push_back({peer, as_box(part)});
    } else {
        for (Box& box : boxes_of(part)) transfers.push_back({peer, std::move(box)});
    }
}

Side shifted(Side side, Index up) {
    for (Interval& one : side.intervals) one = {one.begin + up, one.end + up};
    return side;
}

// The indices that lie in the dimension, with `before` and `after` more around each interval.
Side within(const Dim& dim, Side side, Index before, Index after) {
    for (Interval& one : side.intervals)
        one = {std::max<Index>(one.begin - before, 0), std::min(one.end + after, dim.extent)};
    std::erase_if(side.intervals, [](const Interval& one) { return one.begin >= one.end; });
    return side;
}

// As intersect. Most sides are one interval, which is cut in its place.
Side common(Side side, const Side& other) {
    if (side.intervals.size() != 1 || other.intervals.size() != 1) return intersect(side, other);
    Interval& one = side.intervals[0];
    one = {std::max(one.begin, other.intervals[0].begin), std::min(one.end, other.intervals[0].end)};
    if (one.begin >= one.end) side.intervals.clear();
    return side;
}

// One dimension of transfers with the devices of one shard.
struct ShardCells {
    Index position = 0;  // of a device with this shard, if it has 0 in all other dimensions
    Side cells;
};

std::size_t products(const std::vector<std::vector<ShardCells>>& lines) {
    std::size_t all = 1;
    for (const auto& of_dim : lines) all *= of_dim.size();
    return all;
}

// visit(position, cells) for each product of lines, row-major. `part`: the lines of the dimensions before `dim`.
template <class Visit>
void each_product(const std::vector<std::vector<ShardCells>>& lines, Index position, const Visit& visit, Tile& part,
                  std::size_t dim = 0) {
    if (dim == lines.size()) return visit(position, part);
    for (const ShardCells& one : lines[dim]) {
        part[dim] = one.cells;
        each_product(lines, position + one.position, visit, part, dim + 1);
    }
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
    Tile cells = distinct_cells(wanted, rank);
    if (count(cells) == 0) return receives;
    std::vector<std::vector<ShardCells>> lines(owners.dims.size());
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const Dim& dim = owners.dims[k];
        const Index up = wrap[k] * dim.extent;
        const Side elements = within(dim, shifted(cells[k], -up), 0, 0);
        const std::vector<Index> shards = touched_shards(dim, elements);
        lines[k].reserve(shards.size());
        for (const Index shard : shards) {
            Side part = shifted(common(side(dim, shard), elements), up);
            if (!part.intervals.empty()) lines[k].push_back({with_value(dim.atoms, 0, shard), std::move(part)});
        }
        if (lines[k].empty()) return receives;
    }
    receives.reserve(products(lines));
    const TileNumber first(lines.size(), 0);
    each_product(
        lines, owner_position(owners, wanted, first, rank),
        [&](Index position, const Tile& part) { append(receives, device_at(owners.mesh, position), part); }, cells);
    return receives;
}

std::vector<Transfer> wanted_sends(const Layout& owners, const HaloLayout& wanted, Index rank, const Wrap& wrap) {
    std::vector<Transfer> sends;
    Tile own = tile(owners, rank);
    if (count(own) == 0) return sends;
    std::vector<std::vector<ShardCells>> lines(owners.dims.size());
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const Dim& dim = wanted.owned.dims[k];
        const Halo& halo = wanted.halos[k];
        const Side cells = shifted(own[k], wrap[k] * dim.extent);
        const std::vector<Index> shards = touched_shards(dim, within(dim, cells, halo.after, halo.before));
        lines[k].reserve(shards.size());
        for (const Index shard : shards) {
            Side part = common(distinct_side(wanted, k, shard), cells);
            if (!part.intervals.empty()) lines[k].push_back({with_value(dim.atoms, 0, shard), std::move(part)});
        }
        if (lines[k].empty()) return sends;
    }
    sends.reserve(products(lines));
    const Index own_position = *position_of(owners.mesh, rank);
    const TileNumber number = tile_number(owners, rank);
    const AtomList replicas = complement(used_atoms(wanted.owned), device_count(wanted.owned));
    const auto send = [&](Index position, const Tile& part) {
        for (Index replica = 0; replica < combinations(replicas); ++replica) {
            const Index device = device_at(wanted.owned.mesh, with_value(replicas, position, replica));
            if (device != rank && owner_position(owners, wanted, number, device) == own_position)
                append(sends, device, part);
        }
    };
    each_product(lines, 0, send, own);
    return sends;
}

Result<OwnedBoxes> owned_boxes(const Layout& owners, const HaloLayout& wanted) {
    const Index ranks = std::max(world_size(owners.mesh), world_size(wanted.owned.mesh));
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
