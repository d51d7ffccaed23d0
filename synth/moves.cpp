#include "synth/moves.hpp"

#include <algorithm>

namespace reshard {

// Tile extents and shard counts per dimension, the tile's elements and the digits in use.
struct Moves::Sides {
    std::array<Index, State::lists_max> extent{};
    std::array<Index, State::lists_max> shards{};
    Index tile = 1;
    std::uint32_t used = 0;
};

namespace {

std::uint32_t digits_of(const State::List& list) {
    std::uint32_t set = 0;
    for (std::size_t j = 0; j < list.size; ++j) set |= 1u << list.at[j];
    return set;
}

bool same_digits(const State::List& a, const State::List& b) { return digits_of(a) == digits_of(b); }

// True when one list is a prefix of the other.
bool comparable(const State::List& a, const State::List& b) {
    const std::size_t common = std::min(a.size, b.size);
    return std::equal(a.at.begin(), a.at.begin() + static_cast<std::ptrdiff_t>(common), b.at.begin());
}

void insert_sorted(State::List& list, std::uint8_t digit) {
    list.push(digit);
    std::sort(list.at.begin(), list.at.begin() + list.size);
}

void erase_digit(State::List& list, std::uint8_t digit) {
    const auto end = std::remove(list.at.begin(), list.at.begin() + list.size, digit);
    list.size = static_cast<std::uint8_t>(end - list.at.begin());
}

}  // namespace

Index Moves::shards(const State::List& list) const {
    Index product = 1;
    for (std::size_t j = 0; j < list.size; ++j) product *= size(list.at[j]);
    return product;
}

Moves::Sides Moves::sides_of(const State& state) const {
    Sides sides;
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        sides.used |= digits_of(state.lists[i]);
        sides.shards[i] = shards(state.lists[i]);
        if (i == dims()) continue;
        sides.extent[i] = ceil_divide(frame_.extents[i], sides.shards[i]);
        sides.tile *= sides.extent[i];
    }
    return sides;
}

std::uint64_t Moves::shape_code(const State& state) const {
    std::uint64_t word = 1;
    for (std::size_t i = 0; i < frame_.lists; ++i)
        word = word * 1000003 + static_cast<std::uint64_t>(shards(state.lists[i]));
    return word;
}

Index Moves::least_to_target(const State& state) const {
    const Sides here = sides_of(state);
    const Sides there = sides_of(frame_.target);
    const State::List& summands = state.lists[dims()];
    const State::List& wanted = frame_.target.lists[dims()];
    if (!same_digits(summands, wanted)) return wanted.size == 0 ? there.tile : 0;
    bool prefixes = true;
    bool even = true;
    Index kept = 1;
    for (std::size_t i = 0; i < dims(); ++i) {
        prefixes = prefixes && comparable(state.lists[i], frame_.target.lists[i]);
        even = even && frame_.extents[i] % here.shards[i] == 0 && frame_.extents[i] % there.shards[i] == 0;
        kept *= std::min(here.extent[i], there.extent[i]);
    }
    // Device 0 holds the first tile of both; without even sizes only that much is sure.
    return prefixes || !even ? there.tile - kept : there.tile;
}

bool Moves::nests(std::size_t dim, Index fewer, Index more) const {
    const Index extent = frame_.extents[dim];
    const Index tile = ceil_divide(extent, fewer);
    // Behind a cancelled prefix `extent` is a tile, not the dimension.
    const bool whole = tile == extent && frame_.prefixes[dim].empty();
    return whole || ceil_divide(extent, more) * (more / fewer) == tile;
}

void Moves::append_moves(const State& state, Index tile_max, std::vector<Hop>& hops) const {
    const Sides sides = sides_of(state);
    append_slices(state, sides, hops);
    append_gathers(state, 0, sides, tile_max, hops);
    append_all_to_alls(state, 0, sides, tile_max, hops);
    append_reductions(state, sides, hops);
    append_fills(state, sides, tile_max, hops);
}

void Moves::append_slices(const State& state, const Sides& sides, std::vector<Hop>& hops) const {
    for (std::uint8_t digit = 0; digit < frame_.digits.size(); ++digit) {
        if ((sides.used >> digit & 1) != 0) continue;
        for (std::size_t i = 0; i < dims(); ++i) {
            if (!nests(i, sides.shards[i], sides.shards[i] * size(digit))) continue;
            State next = state;
            next.lists[i].push(digit);
            hops.push_back({StepKind::slice, next, 0});
        }
    }
}

// Every choice of how many digits each dimension from `dim` on drops.
void Moves::append_gathers(State state, std::size_t dim, const Sides& sides, Index tile_max,
                           std::vector<Hop>& hops) const {
    if (dim == dims()) {
        const Index tile = sides_of(state).tile;
        if (tile > tile_max) return;
        if (sides_of(state).used != sides.used) hops.push_back({StepKind::all_gather, state, tile - sides.tile});
        return;
    }
    append_gathers(state, dim + 1, sides, tile_max, hops);
    while (state.lists[dim].size > 0) {
        --state.lists[dim].size;
        if (nests(dim, shards(state.lists[dim]), sides.shards[dim]))
            append_gathers(state, dim + 1, sides, tile_max, hops);
    }
}

// Every choice of suffixes that leave, then every way to deal them out.
void Moves::append_all_to_alls(State state, std::size_t dim, const Sides& sides, Index tile_max,
                               std::vector<Hop>& hops) const {
    if (dim == dims()) {
        const std::uint32_t pool = sides.used & ~sides_of(state).used;
        if (pool != 0) deal(state, 0, pool, sides, tile_max, hops);
        return;
    }
    append_all_to_alls(state, dim + 1, sides, tile_max, hops);
    while (state.lists[dim].size > 0) {
        --state.lists[dim].size;
        if (nests(dim, shards(state.lists[dim]), sides.shards[dim]))
            append_all_to_alls(state, dim + 1, sides, tile_max, hops);
    }
}

// Deals the digits in `pool` to dimensions from `dim` on that lost none, in every order.
void Moves::deal(const State& state, std::size_t dim, std::uint32_t pool, const Sides& before, Index tile_max,
                 std::vector<Hop>& hops) const {
    if (pool == 0) {
        const Sides after = sides_of(state);
        if (after.tile > tile_max) return;  // uneven tiles may grow
        Index group = 1;
        for (std::size_t i = 0; i < dims(); ++i)
            if (after.shards[i] > before.shards[i]) group *= after.shards[i] / before.shards[i];
        hops.push_back({StepKind::all_to_all, state, after.tile - after.tile / group});
        return;
    }
    if (dim == dims()) return;
    deal(state, dim + 1, pool, before, tile_max, hops);
    const Index now = shards(state.lists[dim]);
    if (now < before.shards[dim]) return;  // it lost digits
    for (std::uint8_t digit = 0; digit < frame_.digits.size(); ++digit) {
        if ((pool >> digit & 1) == 0 || !nests(dim, now, now * size(digit))) continue;
        State next = state;
        next.lists[dim].push(digit);
        deal(next, dim, pool & ~(1u << digit), before, tile_max, hops);
    }
}

void Moves::append_reductions(const State& state, const Sides& sides, std::vector<Hop>& hops) const {
    const State::List& summands = state.lists[dims()];
    for (std::size_t j = 0; j < summands.size; ++j) {
        const std::uint8_t digit = summands.at[j];
        State without = state;
        erase_digit(without.lists[dims()], digit);
        hops.push_back({StepKind::all_reduce, without, scale_up(2 * sides.tile, size(digit) - 1, size(digit))});
        for (std::size_t i = 0; i < dims(); ++i) {
            if (!nests(i, sides.shards[i], sides.shards[i] * size(digit))) continue;
            State next = without;
            next.lists[i].push(digit);
            hops.push_back({StepKind::reduce_scatter, next, sides.tile - sides.tile / size(digit)});
        }
    }
}

void Moves::append_fills(const State& state, const Sides& sides, Index tile_max, std::vector<Hop>& hops) const {
    const State::List& wanted = frame_.target.lists[dims()];
    for (std::size_t j = 0; j < wanted.size; ++j) {
        const std::uint8_t digit = wanted.at[j];
        if (sides.used >> digit & 1) {
            for (std::size_t i = 0; i < dims(); ++i) {
                const State::List& list = state.lists[i];
                if (list.size == 0 || list.at[list.size - 1u] != digit) continue;
                State next = state;
                --next.lists[i].size;
                insert_sorted(next.lists[dims()], digit);
                if (nests(i, shards(next.lists[i]), sides.shards[i]) && sides_of(next).tile <= tile_max)
                    hops.push_back({StepKind::zero_fill, next, 0});
            }
        } else {
            State next = state;
            insert_sorted(next.lists[dims()], digit);
            hops.push_back({StepKind::zero_fill, next, 0});
        }
    }
}

void Moves::append_permutes(const State& state, std::vector<Hop>& hops) const {
    State next;
    next.lists[dims()] = state.lists[dims()];
    arrange(next, 0, 1, sides_of(state), all_digits() & ~digits_of(state.lists[dims()]), hops);
}

// Every way to fill the dimensions from `dim` on with digits to the same number of shards.
void Moves::arrange(State& state, std::size_t dim, Index shards, const Sides& before, std::uint32_t pool,
                    std::vector<Hop>& hops) const {
    if (dim == dims()) {
        hops.push_back({StepKind::permute, state, before.tile});
        return;
    }
    if (shards == before.shards[dim]) arrange(state, dim + 1, 1, before, pool, hops);
    for (std::uint8_t digit = 0; digit < frame_.digits.size(); ++digit) {
        if ((pool >> digit & 1) == 0 || before.shards[dim] / shards % size(digit) != 0) continue;
        state.lists[dim].push(digit);
        arrange(state, dim, shards * size(digit), before, pool & ~(1u << digit), hops);
        --state.lists[dim].size;
    }
}

}  // namespace reshard
