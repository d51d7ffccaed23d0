#include "src/execute/lower_halo.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/execute/caller_array.hpp"
#include "src/halo/rounds.hpp"

namespace reshard {

namespace {

// The slot of `part`, whose first element has these indices in an array with that storage.
Slot slot_at(BufferId buffer, Storage storage, const Box& place, Tile part) {
    for (std::size_t k = 0; k < place.size(); ++k) storage.offset += place[k].begin * storage.strides[k];
    return {buffer, 0, std::move(part), std::move(storage)};
}

// The slots that the plans of one array read and write.
struct Slots {
    Slot source;
    Slot held;  // all cells with elements
};

Index bytes_from_others(const Schedule& schedule, Index element_bytes) {
    Index elements = 0;
    for (const Transfer& one : schedule.receives) elements += one.peer == schedule.rank ? 0 : count(one.box);
    return elements * element_bytes;
}

// A box has one set of indices for both its ends, but periodic cells lie at other indices than their elements. So boxes
// and tiles get a leading dimension for each dimension that wraps. Its index is the wrap. The sender's storage steps
// back by the wrap there, the receiver's does not.
struct Wrapping {
    std::vector<std::size_t> dims;  // that wrap
    Index most = 1;                 // wraps are from -most to most
};

Box with_wrap(const Box& cells, const Wrapping& wrapping, const Wrap& wrap) {
    Box box;
    for (const std::size_t dim : wrapping.dims) box.push_back({wrap[dim], wrap[dim] + 1});
    box.insert(box.end(), cells.begin(), cells.end());
    return box;
}

Slot leading(const Slot& slot, const Wrapping& wrapping, const std::vector<Index>& strides) {
    Slot wider = slot;
    wider.tile.assign(wrapping.dims.size(), Side{{{-wrapping.most, wrapping.most + 1}}});
    wider.tile.insert(wider.tile.end(), slot.tile.begin(), slot.tile.end());
    wider.storage.strides = strides;
    wider.storage.strides.insert(wider.storage.strides.end(), slot.storage.strides.begin(), slot.storage.strides.end());
    return wider;
}

// Elements as cells: each side is repeated once for each wrap, and the wrap steps back to the side itself.
Slot sending(const Layout& layout, Slot slot, const Wrapping& wrapping) {
    std::vector<Index> strides;
    for (const std::size_t dim : wrapping.dims) {
        strides.push_back(-slot.tile[dim].size() * slot.storage.strides[dim]);
        Side repeated;
        for (Index wrap = -wrapping.most; wrap <= wrapping.most; ++wrap)
            for (const Interval& one : slot.tile[dim].intervals)
                repeated.intervals.push_back(
                    {one.begin + wrap * layout.dims[dim].extent, one.end + wrap * layout.dims[dim].extent});
        slot.tile[dim] = std::move(repeated);
    }
    return leading(slot, wrapping, strides);
}

Slot receiving(const Slot& slot, const Wrapping& wrapping) {
    return leading(slot, wrapping, std::vector<Index>(wrapping.dims.size(), 0));
}

void append(std::vector<Transfer>& transfers, const std::vector<Transfer>& cells, const Wrapping& wrapping,
            const Wrap& wrap) {
    for (const Transfer& one : cells) transfers.push_back({one.peer, with_wrap(one.box, wrapping, wrap)});
}

// The cells that others read in a round: the block, and the halos of earlier rounds.
Slot sent_in(const HaloMove& move, const HaloRound& round, Index rank, Slot source) {
    if (count(source.tile) == 0) return source;
    const Tile distinct = distinct_cells(move.target, rank);
    for (std::size_t k = 0; k < round.complete.size(); ++k) {
        if (round.complete[k] == 0) continue;
        const Index back = source.tile[k].intervals.front().begin - distinct[k].intervals.front().begin;
        source.storage.offset -= back * source.storage.strides[k];
        source.tile[k] = distinct[k];
    }
    return source;
}

RankPlan exchange(const HaloMove& move, const HaloRound& round, Index rank, const Slots& slots) {
    Wrapping wrapping;
    for (std::size_t k = 0; k < round.halos.size(); ++k) {
        const Halo& halo = round.halos[k];
        if (halo.periodic && halo.before + halo.after > 0) wrapping.dims.push_back(k);
    }
    const Layout& owners = owners_of(move);
    const Slot source = sent_in(move, round, rank, slots.source);
    Schedule schedule{StepKind::exchange, rank, source.tile, slots.held.tile, Combine::copy, {}, {}, {}, {}};
    for (const Wrap& wrap : wraps_of(owners, wanted_in(move, round), rank)) {
        append(schedule.receives, round_receives(move, round, rank, wrap), wrapping, wrap);
        append(schedule.sends, round_sends(move, round, rank, wrap), wrapping, wrap);
    }
    return one_step(owners.dtype, std::move(schedule), sending(owners, source, wrapping),
                    receiving(slots.held, wrapping));
}

// True if some device may hold several cells of one element in this dimension.
bool repeats(const HaloLayout& layout, std::size_t dim) {
    const Halo& halo = layout.halos[dim];
    const Dim& cut = layout.owned.dims[dim];
    return halo.periodic && cut.extent > 0 && block_extent(cut) + halo.before + halo.after > cut.extent;
}

// The local copies that complete dimension `dim`. Earlier dimensions are complete, later ones have their distinct
// cells.
RankPlan copy_repeats(const HaloLayout& layout, Index rank, const Slots& slots, std::size_t dim) {
    const Halo& halo = layout.halos[dim];
    const Index extent = layout.owned.dims[dim].extent;
    const Wrapping wrapping{{dim}, ceil_divide(std::max(halo.before, halo.after), extent) + 1};
    const Tile distinct = distinct_cells(layout, rank);
    Slot filled = slots.held;
    filled.buffer = BufferId::source;
    Schedule schedule{StepKind::exchange, rank, slots.held.tile, slots.held.tile, Combine::copy, {}, {}, {}, {}};
    if (count(distinct) > 0) {
        for (std::size_t k = dim; k < layout.halos.size(); ++k) {
            const Index first = distinct[k].intervals.front().begin - filled.tile[k].intervals.front().begin;
            filled.storage.offset += first * filled.storage.strides[k];
            filled.tile[k] = distinct[k];
        }
        for (Index up = -wrapping.most; up <= wrapping.most; ++up) {
            Wrap wrap(layout.halos.size(), 0);
            wrap[dim] = up;
            const Tile copies = intersect(moved(filled.tile, layout.owned, wrap), slots.held.tile);
            for (const Box& box : up == 0 ? std::vector<Box>() : boxes_of(copies))
                schedule.receives.push_back({rank, with_wrap(box, wrapping, wrap)});
        }
    }
    return one_step(layout.owned.dtype, std::move(schedule), sending(layout.owned, filled, wrapping),
                    receiving(slots.held, wrapping));
}

// Fails if the indices of cells with their wraps are too many to count.
Result<void> check_countable(const HaloLayout& layout) {
    Index cells = 1;
    for (std::size_t k = 0; k < layout.halos.size(); ++k) {
        const Halo& halo = layout.halos[k];
        const Index most = 2 * periodic_halo_max + 3;  // wraps
        const Index side = saturating_add(layout.owned.dims[k].extent, halo.before + halo.after);
        cells = saturating_multiply(cells, std::max<Index>(side, 1));
        if (halo.periodic) cells = saturating_multiply(cells, most * most);
    }
    if (cells == index_max)
        return fail(Code::overflow, fmt::format("a periodic halo has more than {} cells with their wraps", index_max));
    return {};
}

}  // namespace

Result<LoweredHalo> lower_halo(const HaloMove& move, HaloWay way, Index rank, const HaloStorages& storages) {
    RESHARD_CHECK(validate(move, way));
    RESHARD_CHECK(check_countable(move.target));
    const HaloLayout& target = move.target;
    const Index element_bytes = size_of(target.owned.dtype);
    const std::vector<Index> shape = array_shape(target, rank);
    const Tile array = tile_of_shape(shape);
    const bool holds = count(tile(target.owned, rank)) > 0;
    const Storage place = holds && storages.array ? *storages.array : row_major(array);

    LoweredHalo lowered;
    lowered.way = way;
    RESHARD_ASSIGN(lowered.target_bytes, bytes_needed(place, array, element_bytes, "array"));
    Slots slots{{BufferId::source, 0, tile(target.owned, rank), row_major(tile(target.owned, rank))},
                {BufferId::target, 0, held_cells(target, rank), row_major(held_cells(target, rank))}};
    if (holds) {
        RESHARD_CHECK(check_distinct(place, shape));
        slots = {slot_at(BufferId::source, place, core_of(target, rank), slots.source.tile),
                 slot_at(BufferId::target, place, filled_of(target, rank), slots.held.tile)};
    }
    if (move.source) {
        const HaloLayout arrays = source_arrays(move);
        const Tile read = tile(*move.source, rank), whole = tile_of_shape(array_shape(arrays, rank));
        const Storage given = count(read) > 0 && storages.source ? *storages.source : row_major(whole);
        RESHARD_ASSIGN(lowered.source_bytes, bytes_needed(given, whole, element_bytes, "source"));
        slots.source = slot_at(BufferId::source, given, core_of(arrays, rank), read);
    }
    for (const HaloRound& round : rounds_of(move, way)) {
        lowered.rounds.push_back(exchange(move, round, rank, slots));
        lowered.received_bytes += bytes_from_others(lowered.rounds.back().steps.front().schedule, element_bytes);
    }
    for (std::size_t dim = 0; dim < target.halos.size(); ++dim)
        if (repeats(target, dim)) lowered.rounds.push_back(copy_repeats(target, rank, slots, dim));
    for (RankPlan& round : lowered.rounds) {
        round.source_bytes =
            move.source && &round == lowered.rounds.data() ? lowered.source_bytes : lowered.target_bytes;
        round.target_bytes = lowered.target_bytes;
    }
    return lowered;
}

}  // namespace reshard
