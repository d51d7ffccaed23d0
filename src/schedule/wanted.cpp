#include "src/schedule/wanted.hpp"

#include <algorithm>

#include "src/base/try.hpp"
#include "src/layout/halo_sides.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

// A position with the same replica digits as the owners that serve `device`, which wants cells. A device that is no
// owner takes its place among the wanting devices, so that replicas share the work.
Index row_of_owners(const Layout& owners, const HaloView& wanted, Index device) {
    if (const auto position = position_of(owners.mesh, device)) return *position;
    return *position_of(wanted.owned.mesh, device) % device_count(owners.mesh);
}

// True if each tile of a layout without summands is on one device.
bool without_replicas(const Layout& layout) {
    Index tiles = 1;
    for (const Dim& dim : layout.dims) tiles *= shard_count(dim);
    return tiles == device_count(layout);
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

// Adjacent cells in one dimension that the devices of one shard own or want.
struct ShardCells {
    Index position = 0;  // of a device with this shard, if it has 0 in all other dimensions
    Interval cells;
};

using Lines = std::vector<std::vector<ShardCells>>;  // per dimension

// Adds the cells of a shard that lie in `limit`, moved up. A regular cut has one block for each shard and needs no
// list.
void add(std::vector<ShardCells>& line, const Dim& dim, const Halo& halo, Index shard, const Side& limit, Index up) {
    const Index position = with_value(dim.atoms, 0, shard);
    const auto add_part = [&](const Interval& cells, const Interval& most) {
        const Interval part{std::max(cells.begin, most.begin), std::min(cells.end, most.end)};
        if (part.begin < part.end) line.push_back({position, {part.begin + up, part.end + up}});
    };
    if (dim.pieces.empty() && limit.intervals.size() == 1) {
        const Interval block = interval(dim, shard);
        if (block.size() > 0) add_part(distinct_interval(dim, halo, block), limit.intervals.front());
    } else {
        for (const Interval& one : intersect(distinct_side(dim, halo, shard), limit).intervals) add_part(one, one);
    }
}

// visit(position, box) for each product of lines, row-major. `box`: the lines of the dimensions before `dim`.
template <class Visit>
void each_product(const Lines& lines, Index position, const Visit& visit, Box& box, std::size_t dim = 0) {
    if (dim == lines.size()) return visit(position, box);
    for (const ShardCells& one : lines[dim]) {
        box[dim] = one.cells;
        each_product(lines, position + one.position, visit, box, dim + 1);
    }
}

template <class Visit>
void each_product(const Lines& lines, Index position, const Visit& visit) {
    Box box(lines.size());
    each_product(lines, position, visit, box);
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

// Appends the transfers of one wrap between ranks, as boxes of elements.
TransferVisit append_elements(std::vector<Transfer>& transfers, Index rank, const Layout& layout, const Wrap& wrap) {
    return [&transfers, &layout, &wrap, rank](Index peer, const Box& cells) {
        if (peer == rank) return;
        Box& box = transfers.emplace_back(Transfer{peer, cells}).box;
        for (std::size_t k = 0; k < wrap.size(); ++k) {
            const Index down = wrap[k] * layout.dims[k].extent;
            box[k] = {box[k].begin - down, box[k].end - down};
        }
    };
}

// One dimension of the cells at a position of the mesh, by held_side or distinct_side.
Side cells_of(const decltype(held_side)& side_of, const HaloView& wanted, std::size_t k, Index position) {
    const Dim& dim = wanted.owned.dims[k];
    return side_of(dim, wanted.halos[k], value_of(dim.atoms, position));
}

bool begins_before(const Side& side, Index index) {
    return !side.intervals.empty() && side.intervals.front().begin < index;
}

bool ends_after(const Side& side, Index index) { return !side.intervals.empty() && side.intervals.back().end > index; }

}  // namespace

std::vector<Wrap> wraps_of(const Layout& owners, const HaloView& wanted, Index rank) {
    std::vector<Wrap> wraps(1, Wrap(wanted.halos.size(), 0));
    const auto own_position = position_of(owners.mesh, rank), position = position_of(wanted.owned.mesh, rank);
    for (std::size_t k = 0; k < wanted.halos.size(); ++k) {
        const Halo& halo = wanted.halos[k];
        if (!halo.periodic) continue;
        const Dim& dim = owners.dims[k];
        const Side own = own_position ? side(dim, value_of(dim.atoms, *own_position)) : Side();
        const Side cells = position ? cells_of(held_side, wanted, k, *position) : Side();
        // A rank receives beyond a border that its cells cross, and sends what lies near the other border.
        const bool below = halo.before > 0 && (begins_before(cells, 0) || ends_after(own, dim.extent - halo.before));
        const bool above = halo.after > 0 && (ends_after(cells, dim.extent) || begins_before(own, halo.after));
        if (!below && !above) continue;
        std::vector<Wrap> longer;
        for (Wrap& wrap : wraps) {
            for (const Index one : {-1, 0, 1}) {
                if (one != 0 && !(one < 0 ? below : above)) continue;
                wrap[k] = one;
                longer.push_back(wrap);
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

void each_wanted_receive(const Layout& owners, const HaloView& wanted, Index rank, const Wrap& wrap,
                         const TransferVisit& visit) {
    const auto own_position = position_of(wanted.owned.mesh, rank);
    if (!own_position) return;
    Index first = row_of_owners(owners, wanted, rank);
    Lines lines(owners.dims.size());
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const Dim& dim = owners.dims[k];
        const Index up = wrap[k] * dim.extent;
        const Side elements = within(dim, shifted(cells_of(distinct_side, wanted, k, *own_position), -up), 0, 0);
        const std::vector<Index> shards = touched_shards(dim, elements);
        lines[k].reserve(shards.size());
        for (const Index shard : shards) add(lines[k], dim, {}, shard, elements, up);
        if (lines[k].empty()) return;
        first = with_value(dim.atoms, first, 0);
    }
    each_product(lines, first, [&](Index position, const Box& box) { visit(device_at(owners.mesh, position), box); });
}

void each_wanted_send(const Layout& owners, const HaloView& wanted, Index rank, const Wrap& wrap,
                      const TransferVisit& visit) {
    const auto own_position = position_of(owners.mesh, rank);
    if (!own_position) return;
    Lines lines(owners.dims.size());
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const Dim& dim = wanted.owned.dims[k];
        const Halo& halo = wanted.halos[k];
        const Dim& cut = owners.dims[k];
        const Side cells = shifted(side(cut, value_of(cut.atoms, *own_position)), wrap[k] * dim.extent);
        const std::vector<Index> shards = touched_shards(dim, within(dim, cells, halo.after, halo.before));
        lines[k].reserve(shards.size());
        for (const Index shard : shards) add(lines[k], dim, halo, shard, cells, 0);
        if (lines[k].empty()) return;
    }
    const AtomList replicas =
        without_replicas(wanted.owned) ? AtomList() : complement(used_atoms(wanted.owned), device_count(wanted.owned));
    const Index replica_count = combinations(replicas);
    const bool sole_owner = without_replicas(owners);
    // Positions in one row differ only in the digits that cut the owners.
    const auto serves = [&](Index device) {
        Index position = row_of_owners(owners, wanted, device);
        for (const Dim& dim : owners.dims)
            position = with_value(dim.atoms, position, value_of(dim.atoms, *own_position));
        return position == *own_position;
    };
    each_product(lines, 0, [&](Index position, const Box& box) {
        for (Index replica = 0; replica < replica_count; ++replica) {
            const Index device = device_at(wanted.owned.mesh, with_value(replicas, position, replica));
            if (device != rank && (sole_owner || serves(device))) visit(device, box);
        }
    });
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
            each_wanted_receive(owners, wanted, rank, wrap, append_elements(member.receives, rank, owners, wrap));
            each_wanted_send(owners, wanted, rank, wrap, append_elements(member.sends, rank, owners, wrap));
        }
    }
    return boxes;
}

}  // namespace reshard
