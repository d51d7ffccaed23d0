#include "src/execute/lower_halo.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/schedule/wanted.hpp"

namespace reshard {

namespace {

Result<void> check_source(const HaloMove& move) {
    RESHARD_CHECK(validate(move.target));
    if (!move.source) return {};
    RESHARD_CHECK(validate(*move.source));
    RESHARD_CHECK(same_array(*move.source, move.target.owned));
    if (!move.source->unreduced.empty())
        return fail(Code::unsupported, "the source of a halo exchange has summands; reduce them first");
    if (!same_order(move.source->mesh, move.target.owned.mesh))
        return fail(Code::mismatch,
                    "the source of a halo exchange has other devices, or another order, than its target");
    return {};
}

// The bytes from the start of a buffer to the end of `tile`.
Result<Index> bytes_needed(const Storage& storage, const Tile& tile, Index element_bytes, std::string_view what) {
    const auto extent = extent_of(storage, tile);
    if (!extent) return fail(extent.error().code, fmt::format("the {} storage: {}", what, extent.error().message));
    const auto bytes = checked_multiply(*extent, element_bytes);
    if (!bytes) return fail(Code::overflow, fmt::format("the {} storage reaches beyond 64 bits of bytes", what));
    return *bytes;
}

// Fails if two elements of the array may share a place: each stride steps over all that smaller strides cover.
Result<void> check_distinct(const Storage& storage, const std::vector<Index>& shape) {
    std::vector<std::pair<Index, Index>> sides;  // stride, extent
    for (std::size_t k = 0; k < shape.size(); ++k)
        if (shape[k] > 1) sides.emplace_back(storage.strides[k], shape[k]);
    std::ranges::sort(sides);
    Index covered = 1;
    for (const auto& [stride, extent] : sides) {
        if (stride < covered) return fail(Code::mismatch, "the array storage puts two elements in one place");
        covered = stride * extent;
    }
    return {};
}

Tile tile_of_shape(const std::vector<Index>& shape) {
    Tile tile(shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k)
        if (shape[k] > 0) tile[k].intervals.push_back({0, shape[k]});
    return tile;
}

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

// The cells with this wrap. In place, the block itself is there already.
RankPlan exchange(const HaloMove& move, Index rank, const Slots& slots, const Wrap& wrap) {
    const Layout& owners = move.source ? *move.source : move.target.owned;
    Slot from = slots.source;
    from.tile = moved(from.tile, owners, wrap);
    Schedule schedule{StepKind::exchange, rank, from.tile, slots.held.tile, Combine::copy, {}, {}, {}, {}};
    schedule.receives = wanted_receives(owners, move.target, rank, wrap);
    schedule.sends = wanted_sends(owners, move.target, rank, wrap);
    const bool unmoved = std::ranges::all_of(wrap, [](Index one) { return one == 0; });
    if (!move.source && unmoved)
        std::erase_if(schedule.receives, [&](const Transfer& one) { return one.peer == rank; });
    return {owners.dtype, {{0, std::move(schedule), std::move(from), slots.held}}, 0, 0, 0};
}

// True if some device may hold several cells of one element in this dimension.
bool repeats(const HaloLayout& layout, std::size_t dim) {
    const Halo& halo = layout.halos[dim];
    const Dim& cut = layout.owned.dims[dim];
    return halo.periodic && cut.extent > 0 && block_extent(cut) + halo.before + halo.after > cut.extent;
}

// The local copies that complete dimension `dim`, one plan for each distance. Earlier dimensions are complete, later
// ones have their distinct cells.
std::vector<RankPlan> copy_repeats(const HaloLayout& layout, Index rank, const Slots& slots, std::size_t dim) {
    std::vector<RankPlan> plans;
    const Halo& halo = layout.halos[dim];
    const Index extent = layout.owned.dims[dim].extent;
    const Index most = ceil_divide(std::max(halo.before, halo.after), extent) + 1;
    const Tile distinct = distinct_cells(layout, rank);
    Tile filled = slots.held.tile;
    for (std::size_t k = dim; k < layout.halos.size(); ++k) filled[k] = distinct[k];
    for (Index up = -most; up <= most; ++up) {
        if (up == 0) continue;
        Wrap wrap(layout.halos.size(), 0);
        wrap[dim] = up;
        Slot from = slots.held;
        from.buffer = BufferId::source;
        from.tile = moved(from.tile, layout.owned, wrap);
        Schedule schedule{StepKind::exchange, rank, from.tile, slots.held.tile, Combine::copy, {}, {}, {}, {}};
        for (Box& box : boxes_of(intersect(moved(filled, layout.owned, wrap), slots.held.tile)))
            schedule.receives.push_back({rank, std::move(box)});
        plans.push_back({layout.owned.dtype, {{0, std::move(schedule), std::move(from), slots.held}}, 0, 0, 0});
    }
    return plans;
}

}  // namespace

Result<LoweredHalo> lower_halo(const HaloMove& move, Index rank, const HaloStorages& storages) {
    RESHARD_CHECK(check_source(move));
    const HaloLayout& target = move.target;
    const Index element_bytes = size_of(target.owned.dtype);
    const std::vector<Index> shape = array_shape(target, rank);
    const Tile array = tile_of_shape(shape);
    const bool holds = count(tile(target.owned, rank)) > 0;
    const Storage place = holds && storages.array ? *storages.array : row_major(array);

    LoweredHalo lowered;
    RESHARD_ASSIGN(lowered.target_bytes, bytes_needed(place, array, element_bytes, "array"));
    Slots slots{{BufferId::source, 0, tile(target.owned, rank), row_major(tile(target.owned, rank))},
                {BufferId::target, 0, held_cells(target, rank), row_major(held_cells(target, rank))}};
    if (holds) {
        RESHARD_CHECK(check_distinct(place, shape));
        slots = {slot_at(BufferId::source, place, core_of(target, rank), slots.source.tile),
                 slot_at(BufferId::target, place, filled_of(target, rank), slots.held.tile)};
    }
    if (move.source) {
        const Tile read = tile(*move.source, rank);
        const Storage given = count(read) > 0 && storages.source ? *storages.source : row_major(read);
        RESHARD_ASSIGN(lowered.source_bytes, bytes_needed(given, read, element_bytes, "source"));
        slots.source = {BufferId::source, 0, read, given};
    }
    std::vector<RankPlan> first;
    for (const Wrap& wrap : wraps_of(target)) {
        first.push_back(exchange(move, rank, slots, wrap));
        lowered.received_bytes += bytes_from_others(first.back().steps.front().schedule, element_bytes);
    }
    lowered.rounds.push_back(std::move(first));
    for (std::size_t dim = 0; dim < target.halos.size(); ++dim)
        if (repeats(target, dim)) lowered.rounds.push_back(copy_repeats(target, rank, slots, dim));
    for (std::size_t round = 0; round < lowered.rounds.size(); ++round) {
        for (RankPlan& plan : lowered.rounds[round]) {
            plan.source_bytes = move.source && round == 0 ? lowered.source_bytes : lowered.target_bytes;
            plan.target_bytes = lowered.target_bytes;
        }
    }
    return lowered;
}

}  // namespace reshard
