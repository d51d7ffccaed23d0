#include "src/execute/lower_sum.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/schedule/ghost_cells.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

// Cells of all arrays get indices of one index space, since a box has one set of indices for both its ends. In each
// dimension the arrays of the shards lie side by side, `pitch` apart.
using Pitch = std::vector<Index>;

Result<Pitch> pitch_of(const HaloLayout& layout) {
    Pitch pitch;
    for (std::size_t k = 0; k < layout.halos.size(); ++k) {
        const Dim& dim = layout.owned.dims[k];
        const Index ghosts = layout.halos[k].before + layout.halos[k].after;
        pitch.push_back(tile_extent(dim) + ghosts);
        const Index wraps = layout.halos[k].periodic ? 2 * periodic_halo_max + 3 : 1;
        const Index cells = std::max(saturating_multiply(pitch.back(), shard_count(dim)), dim.extent + ghosts);
        if (saturating_multiply(cells, wraps) == index_max)
            return fail(Code::overflow,
                        fmt::format("the arrays along dimension {} have more cells than 64 bits can count", k));
    }
    return pitch;
}

Box lifted(Box cells, const TileNumber& number, const Pitch& pitch) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
        cells[k].begin += number[k] * pitch[k];
        cells[k].end += number[k] * pitch[k];
    }
    return cells;
}

// The intervals without repetition, merged where they touch.
Side side_of(std::vector<Interval> intervals) {
    std::ranges::sort(intervals, {}, &Interval::begin);
    Side merged;
    for (const Interval& one : intervals) {
        if (merged.intervals.empty() || merged.intervals.back().end < one.begin)
            merged.intervals.push_back(one);
        else
            merged.intervals.back().end = std::max(merged.intervals.back().end, one.end);
    }
    return merged;
}

// The smallest tile that has all boxes.
Tile hull(const std::vector<Transfer>& transfers, std::size_t dims) {
    if (transfers.empty()) return nothing(dims);
    Tile tile;
    for (std::size_t k = 0; k < dims; ++k) {
        std::vector<Interval> intervals;
        for (const Transfer& one : transfers) intervals.push_back(one.box[k]);
        tile.push_back(side_of(std::move(intervals)));
    }
    return tile;
}

// True if some ghost cells that lie outside a block in `dim` first may belong to another shard.
bool may_travel(const HaloLayout& layout, std::size_t dim) {
    const Halo& halo = layout.halos[dim];
    if (halo.before == 0 && halo.after == 0) return false;
    for (std::size_t k = dim; k < layout.halos.size(); ++k)
        if (shard_count(layout.owned.dims[k]) > 1) return true;
    return false;
}

// The whole array on this rank.
struct Whole {
    Index rank;
    Slot slot;  // cells are counted from 0
    Index bytes;
};

Result<Whole> whole_array(const HaloLayout& layout, Index rank, const std::optional<Storage>& given) {
    const std::vector<Index> shape = array_shape(layout, rank);
    const Tile cells = tile_of_shape(shape);
    const bool holds = count(tile(layout.owned, rank)) > 0;
    const Storage place = holds && given ? *given : row_major(cells);
    RESHARD_TRY(const Index bytes, bytes_needed(place, cells, size_of(layout.owned.dtype), "array"));
    if (holds) RESHARD_CHECK(check_distinct(place, shape));
    return Whole{rank, {BufferId::source, 0, cells, place}, bytes};
}

// A ghost of this rank's block that is added, and the memory to read it from.
struct Added {
    const GhostCells* ghost;
    Region source;
    bool own;
};

class Lowering {
public:
    Lowering(const HaloLayout& layout, Whole whole, Pitch pitch)
        : layout_(layout), whole_(std::move(whole)), pitch_(std::move(pitch)), bytes_(size_of(layout.owned.dtype)) {
        lowered_.array_bytes = whole_.bytes;
    }

    Result<LoweredSum> lower() {
        for (const GhostCells& ghost : mine_)
            if (ghost.holder == whole_.rank) added_.push_back({&ghost, in_array(ghost.cells), true});
        for (std::size_t dim = 0; dim < layout_.halos.size(); ++dim)
            if (may_travel(layout_, dim)) RESHARD_CHECK(add_plan(dim));
        add_up();
        return std::move(lowered_);
    }

private:
    [[nodiscard]] Region in_array(const Box& cells) const { return region_of(whole_.slot, cells, bytes_); }

    // The exchange of the ghost cells that lie outside the holders' blocks in `dim` first.
    Result<void> add_plan(std::size_t dim) {
        Schedule schedule;
        schedule.rank = whole_.rank;
        std::vector<const GhostCells*> received;
        for (const GhostCells& ghost : mine_) {
            if (ghost.dim != dim || ghost.holder == whole_.rank) continue;
            received.push_back(&ghost);
            const TileNumber number = tile_number(layout_.owned, ghost.holder);
            schedule.receives.push_back({ghost.holder, lifted(ghost.cells, number, pitch_)});
        }
        Slot from = whole_.slot;
        if (count(from.tile) > 0) {
            const TileNumber number = tile_number(layout_.owned, whole_.rank);
            from.tile = as_tile(lifted(as_box(from.tile), number, pitch_));
            for (const GhostCells& ghost : held_) {
                if (ghost.dim != dim || ghost.owner == whole_.rank) continue;
                schedule.sends.push_back({ghost.owner, lifted(ghost.cells, number, pitch_)});
            }
        }
        const Tile cells = hull(schedule.receives, layout_.halos.size());
        Index bytes = bytes_;
        for (const Side& side : cells) bytes = saturating_multiply(bytes, side.size());
        const Index place = ceil_divide(lowered_.workspace_bytes, line_bytes) * line_bytes;
        const Index end = saturating_add(place, bytes);
        if (end > index_max - line_bytes)
            return fail(Code::overflow, "the halos of a block have more bytes than 64 bits can count");
        Slot to{BufferId::target, 0, cells, row_major(cells)};
        for (std::size_t i = 0; i < received.size(); ++i) {
            Slot at = to;
            at.offset_bytes = place;
            added_.push_back({received[i], region_of(at, schedule.receives[i].box, bytes_), false});
            lowered_.received_bytes += count(received[i]->cells) * bytes_;
        }
        schedule.source_tile = from.tile;
        schedule.target_tile = cells;
        RankPlan plan = one_step(layout_.owned.dtype, std::move(schedule), std::move(from), std::move(to));
        plan.source_bytes = whole_.bytes;
        plan.target_bytes = bytes;
        lowered_.plans.push_back(std::move(plan));
        lowered_.places.push_back(place);
        lowered_.workspace_bytes = end;
        return {};
    }

    // By holder, and then by the place in its array.
    void add_up() {
        const auto before = [](const Added& a, const Added& b) {
            if (a.ghost->holder != b.ghost->holder) return a.ghost->holder < b.ghost->holder;
            return std::ranges::lexicographical_compare(a.ghost->cells, b.ghost->cells, {}, &Interval::begin,
                                                        &Interval::begin);
        };
        std::ranges::sort(added_, before);
        for (const Added& one : added_)
            lowered_.additions.push_back(
                {one.own, BoxCombine(layout_.owned.dtype, Combine::sum, one.source, in_array(one.ghost->elements))});
    }

    const HaloLayout& layout_;
    const Whole whole_;
    const Pitch pitch_;
    const Index bytes_;                                                           // of an element
    const std::vector<GhostCells> mine_ = ghosts_of_block(layout_, whole_.rank);  // cells anywhere
    const std::vector<GhostCells> held_ = ghosts_in_array(layout_, whole_.rank);  // elements anywhere
    std::vector<Added> added_;
    LoweredSum lowered_;
};

}  // namespace

Result<LoweredSum> lower_sum(const HaloLayout& layout, Index rank, const std::optional<Storage>& array) {
    RESHARD_CHECK(validate(layout));
    RESHARD_CHECK(can_reduce(layout.owned.dtype, Reduction::sum));
    RESHARD_TRY(auto& pitch, pitch_of(layout));
    RESHARD_TRY(auto& whole, whole_array(layout, rank, array));
    return Lowering(layout, std::move(whole), std::move(pitch)).lower();
}

}  // namespace reshard
