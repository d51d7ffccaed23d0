#include "synth/search/expand.hpp"

#include <algorithm>

namespace reshard {

Moves::Moves(const SearchSpace& frame, bool grouped, bool fills, bool sliced_at_once)
    : frame_(frame),
      grouped_(grouped),
      fills_(fills),
      sliced_at_once_(sliced_at_once),
      there_(sides_of(frame.target)),
      foreign_(frame.exact ? std::make_unique<MissingElements>(frame) : nullptr) {
    for (const Index extent : frame.extents) whole_ = saturating_multiply(whole_, extent);
}

Sides Moves::sides_of(const State& state) const {
    Sides sides;
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        const List list = state.lists[i];
        Index shards = 1;
        for (std::size_t j = 0; j < list.size(); ++j) {
            const Piece& piece = frame_.pieces[list[j]];
            shards *= piece.size;
            sides.cover |= piece.cover;
            sides.clashes |= piece.clashes;
        }
        sides.shards[i] = shards;
        if (i == dims()) continue;
        sides.extent[i] = shards == 1 ? frame_.extents[i] : ceil_divide(frame_.extents[i], shards);
        if (!frame_.even) sides.even = sides.even && frame_.extents[i] % shards == 0;
        sides.tile *= sides.extent[i];
    }
    return sides;
}

std::uint64_t Moves::shape_code(const State& state) const {
    std::uint64_t word = 1;
    const auto add = [&](Index number) { word = word * 1000003 + static_cast<std::uint64_t>(number); };
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        add(frame_.shards(state.lists[i]));
        // As many shards need not be the same tiles.
        if (i == dims() || !frame_.in_pieces(i, state.lists[i])) continue;
        for (std::size_t j = 0; j < state.lists[i].size(); ++j) add(frame_.size(state.lists[i][j]));
    }
    return word;
}

Index Moves::least_to_target(const State& state) const {
    if (!state.lists[dims()].empty() || there_.shards[dims()] > 1) {
        const Index received = least_received(change_to_target(state), whole_, frame_.devices);
        return there_.shards[dims()] > 1 ? received : std::max(there_.tile, received);
    }
    bool prefixes = true;
    for (std::size_t i = 0; i < dims(); ++i)
        prefixes = prefixes && frame_.comparable(state.lists[i], frame_.target.lists[i]);
    if (frame_.even) {
        if (!prefixes && frame_.commensurable(state, frame_.target)) return there_.tile;
        // A device keeps of each side one tile of the finer cut.
        Index finer = 1;
        for (std::size_t i = 0; i < dims(); ++i) finer *= std::max(frame_.shards(state.lists[i]), there_.shards[i]);
        return there_.tile - whole_ / finer;
    }
    const Sides here = sides_of(state);
    Index kept = 1;
    for (std::size_t i = 0; i < dims(); ++i) kept *= std::min(here.extent[i], there_.extent[i]);
    // Device 0 holds the first tile of both; without even sizes and a common refinement only that much is sure.
    const bool even = here.even && there_.even;
    return !prefixes && even && frame_.commensurable(state, frame_.target) ? there_.tile : there_.tile - kept;
}

Index Moves::foreign_to_target(const State& state, Index least) const {
    if (!foreign_ || there_.shards[dims()] > 1 || !state.lists[dims()].empty()) return least;
    return foreign(state, frame_.target, sides_of(state).even && there_.even && !frame_.mixed, least);
}

// `in_closed_form` where that holds: between tiles of one shape each.
Index Moves::foreign(const State& before, const State& after, bool even, Index in_closed_form) const {
    return even || !foreign_ ? in_closed_form : foreign_->elements(before, after);
}

// In every dimension that a step has changed.
bool Moves::all_nest(const Sides& before, const Sides& after) const {
    if (!frame_.exact) return true;  // as each digit entered
    for (std::size_t i = 0; i < dims(); ++i)
        if (!frame_.nests(i, std::min(before.shards[i], after.shards[i]), std::max(before.shards[i], after.shards[i])))
            return false;
    return true;
}

void Moves::append_moves(const State& state, Index tile_max, std::vector<Edge>& hops, Wanted wanted,
                         Index received_max) const {
    const Expansion from{state, sides_of(state), tile_max, received_max, hops};
    if (wanted != Wanted::sums) append_slices(from);
    if (wanted == Wanted::all) {
        append_gathers(from, state, 0);
        append_all_to_alls(from, state, 0);
    }
    append_reductions(from);
    append_fills(from);
}

void Moves::append_slices(const Expansion& from) const {
    if (frame_.exact || sliced_at_once_) {
        for (std::size_t i = 0; i < dims(); ++i) append_slices_of(from, from.state, i, from.sides.clashes);
        return;
    }
    for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
        if ((from.sides.clashes >> piece & 1) != 0) continue;
        for (std::size_t i = 0; i < dims(); ++i) {
            if (!frame_.nests(i, from.sides.shards[i], from.sides.shards[i] * frame_.size(piece))) continue;
            Edge hop{from.state, StepKind::slice};
            frame_.append(hop.state.lists[i], piece);
            from.hops.push_back(hop);
        }
    }
}

// Every longer list: ragged tiles of many digits may nest even if tiles of fewer digits do not.
void Moves::append_slices_of(const Expansion& from, State state, std::size_t dim, std::uint32_t clashes) const {
    const List list = state.lists[dim];
    const Index now = frame_.shards(list);
    for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
        if ((clashes >> piece & 1) != 0) continue;
        state.lists[dim] = list;
        frame_.append(state.lists[dim], piece);
        if (frame_.nests(dim, from.sides.shards[dim], now * frame_.size(piece)))
            from.hops.push_back({state, StepKind::slice});
        append_slices_of(from, state, dim, clashes | frame_.pieces[piece].clashes);
    }
}

// Every choice of how much each dimension from `dim` on drops.
void Moves::append_gathers(const Expansion& from, State state, std::size_t dim) const {
    if (dim == dims()) {
        const Sides after = sides_of(state);
        if (after.tile > from.tile_max || after.cover == from.sides.cover) return;
        const Index received = foreign(from.state, state, from.sides.even && after.even, after.tile - from.sides.tile);
        Edge hop{state, StepKind::all_gather, after.tile, received};
        for (std::size_t i = 0; i < dims(); ++i) hop.group_size *= from.sides.shards[i] / after.shards[i];
        hop.sent = saturating_multiply(from.sides.tile, hop.group_size - 1);
        hop.messages = hop.group_size - 1;
        hop.group = from.sides.cover & ~after.cover;
        from.hops.push_back(hop);
        return;
    }
    append_gathers(from, state, dim + 1);
    for_each_shorter(from, state, dim, [&](List list) {
        state.lists[dim] = list;
        append_gathers(from, state, dim + 1);
    });
}

// Every choice of suffixes that leave, then every way to deal them out.
void Moves::append_all_to_alls(const Expansion& from, State state, std::size_t dim) const {
    if (dim == dims()) {
        std::uint32_t cover = 0;
        for (std::size_t i = 0; i <= dims(); ++i) cover |= frame_.cover_of(state.lists[i]);
        const std::uint32_t pool = from.sides.cover & ~cover;
        if (pool == 0) return;
        // Wherever the digits go, the tile keeps its size, and a device keeps its own part.
        const Index received = from.sides.tile - from.sides.tile / std::max<Index>(frame_.combinations_of(pool), 1);
        if (!frame_.even || received <= from.received_max) deal(from, state, 0, pool);
        return;
    }
    append_all_to_alls(from, state, dim + 1);
    for_each_shorter(from, state, dim, [&](List list) {
        state.lists[dim] = list;
        append_all_to_alls(from, state, dim + 1);
    });
}

// Deals the digits in the cover `pool` to dimensions from `dim` on that lost none, in every order.
void Moves::deal(const Expansion& from, const State& state, std::size_t dim, std::uint32_t pool) const {
    const Sides& before = from.sides;
    if (pool == 0) {
        const Sides after = sides_of(state);
        if (after.tile > from.tile_max || !all_nest(before, after)) return;  // uneven tiles may grow
        Edge hop{state, StepKind::all_to_all, after.tile};
        Index kept = 1;
        for (std::size_t i = 0; i < dims(); ++i) {
            kept *= std::min(before.extent[i], after.extent[i]);
            if (after.shards[i] <= before.shards[i]) continue;
            hop.group_size *= after.shards[i] / before.shards[i];
            hop.group |= frame_.cover_of(state.lists[i]) & ~frame_.cover_of(from.state.lists[i]);
        }
        const bool even = before.even && after.even;
        hop.received = foreign(from.state, state, even, after.tile - kept);
        hop.sent = even ? hop.received : before.tile;
        hop.messages = hop.group_size - 1;
        from.hops.push_back(hop);
        return;
    }
    if (dim == dims()) return;
    deal(from, state, dim + 1, pool);
    if (frame_.shards(state.lists[dim]) < before.shards[dim]) return;  // it lost digits
    for_each_entering(state, dim, pool, [&](const State& next, std::uint32_t rest) { deal(from, next, dim, rest); });
}

void Moves::append_permutes(const State& state, std::vector<Edge>& hops) const {
    State next;
    choose_summands(state, sides_of(state), next, 0, hops);
}

// Every set of digits, numbered from `first` on, that makes as many summands; each most major first.
void Moves::choose_summands(const State& before, const Sides& sides, State& state, std::uint8_t first,
                            std::vector<Edge>& hops) const {
    const List list = state.lists[dims()];
    const Index summands = frame_.shards(list);
    if (summands == sides.shards[dims()]) {
        arrange(before, sides, state, 0, 1, frame_.clashes_of(list), hops);
        return;
    }
    const std::uint32_t clashes = frame_.clashes_of(list);
    for (std::uint8_t piece = first; piece < frame_.pieces.size(); ++piece) {
        if ((clashes >> piece & 1) != 0 || sides.shards[dims()] / summands % frame_.size(piece) != 0) continue;
        state.lists[dims()] = with_summand(list, piece);
        choose_summands(before, sides, state, static_cast<std::uint8_t>(piece + 1), hops);
    }
    state.lists[dims()] = list;
}

// Every way to fill the dimensions from `dim` on with digits to the same number of shards.
void Moves::arrange(const State& before, const Sides& sides, State& state, std::size_t dim, Index shards,
                    std::uint32_t clashes, std::vector<Edge>& hops) const {
    if (dim == dims()) {
        for (std::size_t i = 0; i < dims(); ++i)
            if (!frame_.same_cut(i, before.lists[i], state.lists[i])) return;
        Edge hop{state, StepKind::permute, sides.tile, sides.tile, sides.tile, 1, frame_.devices};
        if (grouped_) {
            hop.group = touched(before, sides, state, sides_of(state));
            hop.group_size = std::max<Index>(frame_.combinations_of(hop.group), 1);
        }
        hops.push_back(hop);
        return;
    }
    if (shards == sides.shards[dim]) {
        arrange(before, sides, state, dim + 1, 1, clashes, hops);
        return;
    }
    const List list = state.lists[dim];
    for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
        if ((clashes >> piece & 1) != 0 || sides.shards[dim] / shards % frame_.size(piece) != 0) continue;
        frame_.append(state.lists[dim], piece);
        arrange(before, sides, state, dim, shards * frame_.size(piece), clashes | frame_.pieces[piece].clashes, hops);
        state.lists[dim] = list;
    }
}

}  // namespace reshard
