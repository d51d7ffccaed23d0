// The moves that change summands, and the exchange.
#include <algorithm>

#include "synth/search/digit_facts.hpp"
#include "synth/search/expand.hpp"

namespace reshard {

List Moves::with_summand(List list, std::uint8_t piece) const {
    // A set, most major first.
    InlineVector<std::uint8_t, digits_max + 1> order;
    for (std::size_t j = 0; j < list.size(); ++j) order.push_back(list[j]);
    order.push_back(piece);
    std::sort(order.begin(), order.end(),
              [&](std::uint8_t a, std::uint8_t b) { return frame_.pieces[a].stride > frame_.pieces[b].stride; });
    List sorted;
    for (const std::uint8_t one : order) frame_.append(sorted, one);
    return sorted;
}

void Moves::append_reductions(const Expansion& from) const {
    const List summands = from.state.lists[dims()];
    if (!frame_.mixed) return append_reductions(from, summands);
    for_each_cut(frame_.cover_of(summands), List(), 0, [&](List cut) { append_reductions(from, cut); });
}

// Appends the reductions over every subset of these digits, which make up the summands.
void Moves::append_reductions(const Expansion& from, List summands) const {
    for (std::uint32_t reduced = 1; reduced >> summands.size() == 0; ++reduced) {
        Edge hop{from.state, StepKind::all_reduce, from.sides.tile};
        List& kept = hop.state.lists[dims()];
        kept = List();
        std::uint32_t pool = 0;
        for (std::size_t j = 0; j < summands.size(); ++j) {
            if ((reduced >> j & 1) == 0) {
                kept = with_summand(kept, summands[j]);
                continue;
            }
            pool |= frame_.pieces[summands[j]].cover;
            hop.group_size *= frame_.size(summands[j]);
        }
        hop.received = scale_up(saturating_multiply(2, from.sides.tile), hop.group_size - 1, hop.group_size);
        hop.sent = hop.received;
        hop.messages = 2 * (hop.group_size - 1);
        hop.group = pool;
        from.hops.push_back(hop);
        append_scatters(from, hop.state, 0, pool);
    }
}

// Deals what was reduced to the dimensions from `dim` on, in every order.
void Moves::append_scatters(const Expansion& from, const State& state, std::size_t dim, std::uint32_t pool) const {
    if (pool == 0) {
        const Sides after = sides_of(state);
        if (after.tile > from.tile_max || !all_nest(from.sides, after)) return;
        Edge hop{state, StepKind::reduce_scatter, after.tile};
        for (std::size_t i = 0; i < dims(); ++i) hop.group_size *= after.shards[i] / from.sides.shards[i];
        hop.received = saturating_multiply(after.tile, hop.group_size - 1);
        hop.sent = from.sides.even && after.even ? hop.received : from.sides.tile;
        hop.messages = hop.group_size - 1;
        hop.group = frame_.cover_of(from.state.lists[dims()]) & ~frame_.cover_of(state.lists[dims()]);
        from.hops.push_back(hop);
        return;
    }
    if (dim == dims()) return;
    append_scatters(from, state, dim + 1, pool);
    for_each_entering(state, dim, pool,
                      [&](const State& next, std::uint32_t rest) { append_scatters(from, next, dim, rest); });
}

// A digit that becomes unreduced was replicated or a suffix, and is usually unreduced in the target. Other digits are
// tried only if that can pay: ragged tiles that do not nest may leave their dimension only as summands, and a reduction
// may deal out more digits in one step.
void Moves::append_fills(const Expansion& from) const {
    if (!frame_.sums()) return;
    const std::uint32_t wanted = frame_.cover_of(frame_.target.lists[dims()]);
    const std::uint32_t suffixes = frame_.exact || fills_ ? frame_.cover : wanted;
    const std::uint32_t replicas = fills_ ? frame_.cover : wanted;
    for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
        if ((from.sides.clashes >> piece & 1) != 0 || (frame_.pieces[piece].cover & ~replicas) != 0) continue;
        Edge hop{from.state, StepKind::zero_fill, from.sides.tile};
        hop.state.lists[dims()] = with_summand(hop.state.lists[dims()], piece);
        from.hops.push_back(hop);
    }
    if (suffixes == 0) return;
    for (std::size_t i = 0; i < dims(); ++i)
        for_each_shorter(from, from.state, i, [&](List list) {
            const std::uint32_t left = frame_.cover_of(from.state.lists[i]) & ~frame_.cover_of(list);
            if ((left & ~suffixes) != 0) return;
            Edge hop{from.state, StepKind::zero_fill};
            hop.state.lists[i] = list;
            bool there = false;  // all cuts of it make one list
            for_each_cut(left, List(), 0, [&](List digits) {
                for (std::size_t j = 0; j < digits.size() && !there; ++j)
                    hop.state.lists[dims()] = with_summand(hop.state.lists[dims()], digits[j]);
                there = true;
            });
            hop.tile = sides_of(hop.state).tile;
            if (there && hop.tile <= from.tile_max) from.hops.push_back(hop);
        });
}

// As summand_change.
SummandChange Moves::change_to_target(const State& state) const {
    const std::size_t sums = dims();
    const Sides here = sides_of(state);
    const auto copies = [&](const Sides& sides) {
        Index tiles = 1;
        for (std::size_t i = 0; i < frame_.lists; ++i) tiles *= sides.shards[i];
        return frame_.devices / tiles;
    };
    if (frame_.mixed) {
        const Index wanted = copies(there_);
        return {here.shards[sums], there_.shards[sums], wanted, std::min(copies(here), wanted), here.shards[sums], 1};
    }
    InlineVector<ChangedDigit, pieces_max> digits;
    for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece)
        digits.push_back({frame_.size(piece), lists_max, lists_max, true});
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        for (std::size_t j = 0; j < state.lists[i].size(); ++j) {
            digits[state.lists[i][j]].from = i;
            digits[state.lists[i][j]].even = i == sums || frame_.extents[i] % here.shards[i] == 0;
        }
        for (std::size_t j = 0; j < frame_.target.lists[i].size(); ++j) digits[frame_.target.lists[i][j]].to = i;
    }
    return summand_change({digits.begin(), digits.size()}, lists_max, sums);
}

// As idle_atoms. A gap that neither state uses may not be a digit: with 6 devices, the gap between 2 and 3 is none.
std::uint32_t Moves::idle(std::uint32_t used, std::uint32_t wanted) const {
    const std::uint32_t unused = frame_.cover & ~(used | wanted);
    if (!frame_.mixed) return unused;
    std::uint32_t digits = 0;
    for (std::size_t bit = 0; bit < frame_.lows.size(); ++bit) {
        const std::size_t first = bit;
        if ((unused >> first & 1) == 0) continue;
        const auto follows = [&](std::uint32_t set, std::size_t next) {
            return next < frame_.lows.size() && (set >> next & 1) == 0 && frame_.lows[next] == frame_.highs[next - 1];
        };
        while (follows(used | wanted, bit + 1)) ++bit;
        // The gap of each layout that this one lies in.
        const auto aligned = [&](std::uint32_t set) {
            std::size_t lowest = first;
            std::size_t highest = bit;
            while (lowest > 0 && (set >> (lowest - 1) & 1) == 0 && follows(set, lowest)) --lowest;
            while (follows(set, highest + 1)) ++highest;
            return frame_.lows[first] % frame_.lows[lowest] == 0 && frame_.highs[highest] % frame_.highs[bit] == 0;
        };
        if (frame_.highs[bit] % frame_.lows[first] != 0 || !aligned(used) || !aligned(wanted)) continue;
        for (std::size_t i = first; i <= bit; ++i) digits |= 1u << i;
    }
    return digits;
}

// As touched_atoms: all digits except idle digits, digits that lead a dimension at both ends, and equal summands.
std::uint32_t Moves::touched(const State& state, const Sides& sides, const State& next, const Sides& after) const {
    std::uint32_t untouched = idle(sides.cover, after.cover);
    for (std::size_t i = 0; i < dims(); ++i) untouched |= frame_.common_cover(state.lists[i], next.lists[i]);
    if (state.lists[dims()] == next.lists[dims()]) untouched |= frame_.cover_of(next.lists[dims()]);
    return frame_.cover & ~untouched;
}

// The elements that a device may hold at both ends: device 0 has the first tile of both.
Index Moves::first_kept(const Sides& before, const Sides& after) const {
    Index kept = 1;
    for (std::size_t i = 0; i < dims(); ++i) kept *= std::min(before.extent[i], after.extent[i]);
    return kept;
}

// As the judge's rule: see type_exchange in src/plan/step.cpp.
Edge Moves::exchange(const State& state, const Sides& before, const State& next, const Sides& after, bool timed) const {
    const bool even = before.even && after.even;
    Edge hop{next, StepKind::exchange, after.tile};
    if (before.tile == 0) return hop;  // no element moves
    bool prefixes = state.lists[dims()] == next.lists[dims()];
    for (std::size_t i = 0; i < dims() && prefixes; ++i) prefixes = frame_.comparable(state.lists[i], next.lists[i]);
    const Index piece = first_kept(before, after);
    hop.received = foreign(state, next, even && !frame_.mixed, after.tile - (prefixes ? piece : 0));
    if (!timed) return hop;
    hop.group = touched(state, before, next, after);
    hop.group_size = std::max<Index>(frame_.combinations_of(hop.group), 1);
    Index touches = 1;
    for (std::size_t i = 0; i < dims(); ++i) {
        const Index b = before.extent[i];
        const Index a = after.extent[i];
        if (frame_.in_pieces(i, state.lists[i]) || frame_.in_pieces(i, next.lists[i])) {
            touches *= before.shards[i];
            continue;
        }
        if (b % a == 0) continue;
        touches *= a % b == 0 ? a / b : std::min(before.shards[i], ceil_divide(a, b) + 1);
    }
    const auto replicas = [&](const Sides& sides) {
        Index used = 1;
        for (std::size_t i = 0; i < frame_.lists; ++i) used *= sides.shards[i];
        return frame_.devices / used;
    };
    const Index groups = std::max<Index>(frame_.combinations_of(idle(before.cover, after.cover)), 1);
    const Index wanting = replicas(after) / groups;
    const Index serving = replicas(before) / groups;
    hop.sent = even && prefixes ? hop.received : scale_up(before.tile, wanting, serving);
    const Index wanted = saturating_multiply(before.tile, wanting);
    const Index kept = saturating_multiply(piece, serving);
    Index peers = serving;
    if (even && wanted > kept) peers = std::min(serving, ceil_divide(piece, ceil_divide(wanted - kept, serving)) + 1);
    hop.messages = hop.received == 0 ? 0 : std::min(saturating_multiply(peers, touches), hop.group_size - 1);
    return hop;
}

bool Moves::append_all_states(std::size_t most, std::vector<State>& states) const {
    const auto add = [&](const State& state) {
        states.push_back(state);
        append_finer(state, 0, sides_of(state).clashes, most, states);
    };
    State none;
    if (frame_.sums())
        for_each_summands(none, 0, add);
    else
        none.lists[dims()] = frame_.target.lists[dims()];
    add(none);
    const bool all = states.size() < most;
    if (!all) states.clear();
    return all;
}

void Moves::append_states_behind(std::size_t most, std::vector<State>& states) const {
    const List wanted = frame_.target.lists[dims()];
    for (std::uint32_t filled = 0; filled >> wanted.size() == 0; ++filled) {
        State state = frame_.target;
        state.lists[dims()] = List();
        for (std::size_t j = 0; j < wanted.size(); ++j)
            if ((filled >> j & 1) == 0) frame_.append(state.lists[dims()], wanted[j]);
        states.push_back(state);
        append_finer(state, 0, sides_of(state).clashes, most, states);
    }
}

// Every way to append digits to the dimensions from `dim` on.
void Moves::append_finer(const State& state, std::size_t dim, std::uint32_t clashes, std::size_t most,
                         std::vector<State>& states) const {
    for (std::size_t i = dim; i < dims(); ++i)
        for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
            if ((clashes >> piece & 1) != 0 || states.size() >= most) continue;
            const Index now = frame_.shards(state.lists[i]);
            // If the search looks at every device, an exchange may connect any tiles.
            if (!frame_.exact && !frame_.nests(i, now, now * frame_.size(piece))) continue;
            State next = state;
            frame_.append(next.lists[i], piece);
            // Two cuts of one axis may make one list.
            if (frame_.mixed && std::ranges::find(states, next) != states.end()) continue;
            states.push_back(next);
            append_finer(next, i, clashes | frame_.pieces[piece].clashes, most, states);
        }
}

}  // namespace reshard
