// The moves that change summands, and the exchange.
#include <algorithm>

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
    for (std::uint32_t reduced = 1; reduced >> summands.size() == 0; ++reduced) {
        Edge hop{from.state, StepKind::all_reduce, from.sides.tile};
        List& kept = hop.state.lists[dims()];
        kept = List();
        std::uint32_t pool = 0;
        for (std::size_t j = 0; j < summands.size(); ++j) {
            if ((reduced >> j & 1) == 0) {
                frame_.append(kept, summands[j]);
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

void Moves::append_fills(const Expansion& from) const {
    const List wanted = frame_.target.lists[dims()];
    for (std::size_t j = 0; j < wanted.size(); ++j) {
        const std::uint8_t piece = wanted[j];
        if ((from.sides.clashes >> piece & 1) == 0) {
            Edge hop{from.state, StepKind::zero_fill, from.sides.tile};
            hop.state.lists[dims()] = with_summand(hop.state.lists[dims()], piece);
            from.hops.push_back(hop);
            continue;
        }
        for (std::size_t i = 0; i < dims(); ++i) {
            const List list = from.state.lists[i];
            if (list.empty() || list.back() != piece) continue;
            Edge hop{from.state, StepKind::zero_fill};
            hop.state.lists[i].pop();
            hop.state.lists[dims()] = with_summand(hop.state.lists[dims()], piece);
            hop.tile = sides_of(hop.state).tile;
            if (hop.tile <= from.tile_max && nests(i, frame_.shards(hop.state.lists[i]), from.sides.shards[i]))
                from.hops.push_back(hop);
        }
    }
}

// As idle_atoms. What neither uses may be no digit: between 2 and 3 there is none of a device among 6.
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

// As touched_atoms: all digits but those idle at both ends, those that lead a dimension at both, equal summands.
std::uint32_t Moves::touched(const State& state, const Sides& sides, const State& next, const Sides& after) const {
    std::uint32_t untouched = idle(sides.cover, after.cover);
    for (std::size_t i = 0; i < dims(); ++i) untouched |= frame_.common_cover(state.lists[i], next.lists[i]);
    if (state.lists[dims()] == next.lists[dims()]) untouched |= frame_.cover_of(next.lists[dims()]);
    return frame_.cover & ~untouched;
}

// As the judge's rule: see type_exchange in src/plan/step.cpp.
Edge Moves::exchange(const State& state, const State& next) const {
    const Sides before = sides_of(state);
    const Sides after = sides_of(next);
    const bool even = before.even && after.even;
    Edge hop{next, StepKind::exchange, after.tile};
    if (before.tile == 0) return hop;  // no element moves
    hop.group = touched(state, before, next, after);
    hop.group_size = std::max<Index>(frame_.combinations_of(hop.group), 1);
    bool prefixes = true;
    Index piece = 1;
    Index touches = 1;
    for (std::size_t i = 0; i < dims(); ++i) {
        prefixes = prefixes && frame_.comparable(state.lists[i], next.lists[i]);
        const Index b = before.extent[i];
        const Index a = after.extent[i];
        piece *= std::min(a, b);
        if (b % a == 0) continue;
        touches *= a % b == 0 ? a / b : std::min(before.shards[i], ceil_divide(a, b) + 1);
    }
    hop.received = foreign(state, next, even && !frame_.mixed, after.tile - (prefixes ? piece : 0));
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

std::vector<State> Moves::states_to_exchange_to(bool anywhere, std::size_t most) const {
    std::vector<State> states;
    if (anywhere) {
        State none;
        none.lists[dims()] = frame_.target.lists[dims()];
        states.push_back(none);
        append_finer(none, 0, frame_.clashes_of(none.lists[dims()]), most, states);
        if (states.size() < most) return states;
        states.clear();
    }
    states.push_back(frame_.target);
    append_finer(frame_.target, 0, sides_of(frame_.target).clashes, most, states);
    return states;
}

// Every way to append digits to the dimensions from `dim` on.
void Moves::append_finer(const State& state, std::size_t dim, std::uint32_t clashes, std::size_t most,
                         std::vector<State>& states) const {
    for (std::size_t i = dim; i < dims(); ++i)
        for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
            if ((clashes >> piece & 1) != 0 || states.size() >= most) continue;
            const Index now = frame_.shards(state.lists[i]);
            if (!nests(i, now, now * frame_.size(piece))) continue;
            State next = state;
            frame_.append(next.lists[i], piece);
            // Two cuts of one axis may make one list.
            if (frame_.mixed && std::ranges::find(states, next) != states.end()) continue;
            states.push_back(next);
            append_finer(next, i, clashes | frame_.pieces[piece].clashes, most, states);
        }
}

}  // namespace reshard
