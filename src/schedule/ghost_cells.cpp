#include "src/schedule/ghost_cells.hpp"

#include <algorithm>

#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

// One dimension: cells in the array of one shard, and the elements in the array of the other.
struct Line {
    Index shard = 0;  // the other one
    Interval cells;
    Interval elements;
    bool core = false;  // the block itself
};

enum class Role { holder, owner };

Interval overlap(const Interval& a, const Interval& b) {
    const Index begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

Interval up(const Interval& interval, Index by) { return {interval.begin + by, interval.end + by}; }

// The indices whose blocks may have a line with this one, which the shard has as its role says.
Interval reach(const Halo& halo, const Interval& block, Role role) {
    if (role == Role::holder) return {block.begin - halo.before, block.end + halo.after};
    return {block.begin - halo.after, block.end + halo.before};
}

// Cells of the holder's array that have elements of the owner's block, which lies `lift` above its indices.
Line line(const Halo& halo, const Interval& holder, const Interval& owner, Index lift) {
    const Interval wide{holder.begin - halo.before, holder.end + halo.after};
    const Interval common = overlap(wide, up(owner, lift));
    return {0, up(common, halo.before - holder.begin), up(common, halo.before - owner.begin - lift), false};
}

// All lines of one dimension of a shard, by the other shard and then by the wrap.
std::vector<Line> lines_of(const Dim& dim, const Halo& halo, Index shard, Role role) {
    const Side own = side(dim, shard);
    if (own.intervals.empty()) return {};
    if (halo.before == 0 && halo.after == 0) return {{shard, {0, own.size()}, {0, own.size()}, true}};
    const Interval block = own.intervals.front();
    const Index most = halo.periodic ? ceil_divide(std::max(halo.before, halo.after), dim.extent) + 1 : 0;
    std::vector<Line> lines;
    for (Index wrap = -most; wrap <= most; ++wrap) {
        // A holder looks down at owners whose indices are lifted. An owner looks up at holders.
        const Index lift = wrap * dim.extent;
        const Interval looked = up(reach(halo, block, role), role == Role::holder ? -lift : lift);
        const Interval near = overlap(looked, {0, dim.extent});
        if (near.size() == 0) continue;
        for (const Index other : touched_shards(dim, Side{{near}})) {
            const Interval theirs = side(dim, other).intervals.front();
            Line found = role == Role::holder ? line(halo, block, theirs, lift) : line(halo, theirs, block, lift);
            if (found.cells.size() == 0) continue;
            found.shard = other;
            found.core = other == shard && wrap == 0;
            lines.push_back(found);
        }
    }
    std::ranges::stable_sort(lines, {}, &Line::shard);
    return lines;
}

// A product of lines, as far as it is made.
struct Product {
    Index position;  // of the other device
    Box cells;
    Box elements;
    std::optional<std::size_t> dim;  // the first that is not the core
};

std::vector<GhostCells> ghosts(const HaloLayout& layout, Index device, Role role) {
    const Layout& owned = layout.owned;
    const auto position = position_of(owned.mesh, device);
    if (!position) return {};
    const TileNumber number = tile_number(owned, device);
    std::vector<Product> products = {{*position, {}, {}, {}}};
    for (std::size_t k = 0; k < number.size(); ++k) {
        const std::vector<Line> lines = lines_of(owned.dims[k], layout.halos[k], number[k], role);
        std::vector<Product> longer;
        longer.reserve(products.size() * lines.size());
        for (const Product& product : products)
            for (const Line& one : lines) {
                Product& made = longer.emplace_back(product);
                made.position = with_value(owned.dims[k].atoms, product.position, one.shard);
                made.cells.push_back(one.cells);
                made.elements.push_back(one.elements);
                if (!made.dim && !one.core) made.dim = k;
            }
        products = std::move(longer);
    }
    std::vector<GhostCells> found;
    for (Product& product : products) {
        if (!product.dim) continue;  // the block
        const Index other = device_at(owned.mesh, product.position);
        found.push_back({role == Role::holder ? device : other, role == Role::holder ? other : device,
                         std::move(product.cells), std::move(product.elements), *product.dim});
    }
    return found;
}

}  // namespace

std::vector<GhostCells> ghosts_of_block(const HaloLayout& layout, Index device) {
    return ghosts(layout, device, Role::owner);
}

std::vector<GhostCells> ghosts_in_array(const HaloLayout& layout, Index device) {
    return ghosts(layout, device, Role::holder);
}

}  // namespace reshard
