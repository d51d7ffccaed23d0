#include "synth/search/digit_facts.hpp"

#include <algorithm>

namespace reshard {

namespace {

Slots sorted_within(Slots state, Bits group) {
    if (std::has_single_bit(group)) return state;
    std::array<std::size_t, placed_max> slots{};
    std::size_t count = 0;
    each(group, [&](std::size_t k) {
        std::size_t at = count++;
        const std::size_t slot = slot_of(state, k);
        for (; at > 0 && slots[at - 1] > slot; --at) slots[at] = slots[at - 1];
        slots[at] = slot;
    });
    count = 0;
    each(group, [&](std::size_t k) { state = with_slot(state, k, slots[count++]); });
    return state;
}

}  // namespace

DigitFacts::DigitFacts(const DigitSpace& of, std::span<const std::uint8_t> level)
    : space(of), digits(of.digits.size()), slots(of.extents.size()) {
    for (std::size_t k = 0; k < digits; ++k) {
        size[k] = space.digits[k].size;
        goal[k] = space.to[k];
        if (goal[k] == unreduced) {
            goal[k] = sums_slot;
        } else {
            wanted |= Bits{1} << goal[k];
            if (goal[k] != 0) shards *= size[k];
        }
        goal_of[goal[k]] = static_cast<std::uint8_t>(k);
        for (std::size_t i = 1; i < slots; ++i) {
            if (space.is_rest(i) ? space.extents[i] % size[k] == 0 : space.extents[i] == size[k])
                accept[k] |= Bits{1} << i;
        }
    }
    wanted &= ~Bits{1};
    there = space.elements / shards;
    for (std::size_t p = 0; p + 1 < space.parts.size(); ++p) {
        const DigitSpace::Part& part = space.parts[p];
        const DigitSpace::Part& next = space.parts[p + 1];
        if (part.slot != 0 && next.slot != 0 && part.dim == next.dim) followed |= Bits{1} << part.slot;
    }
    for (std::size_t k = 0; k < digits; ++k) {
        if ((wanted >> goal[k] & 1) != 0) continue;
        const auto is_twin = [&](Bits group) {
            const auto other = static_cast<std::size_t>(std::countr_zero(group));
            return size[other] == size[k] && goal[other] == goal[k] && (level.empty() || level[other] == level[k]);
        };
        std::size_t group = 0;
        while (group < twins.size() && !is_twin(twins[group])) ++group;
        if (group == twins.size()) twins.push_back(0);
        twins_before[k] = twins[group];
        twins[group] |= Bits{1} << k;
    }
}

Slots DigitFacts::sorted(Slots state) const {
    for (const Bits group : twins) state = sorted_within(state, group);
    return state;
}

Slots DigitFacts::shape(Slots state) const {
    Bits done = 0;
    for (std::size_t k = 0; k < digits; ++k) {
        if ((done >> k & 1) != 0) continue;
        Bits group = 0;
        for (std::size_t j = k; j < digits; ++j)
            if (size[j] == size[k]) group |= Bits{1} << j;
        state = sorted_within(state, group);
        done |= group;
    }
    return state;
}

bool DigitFacts::has_place(Slots state, std::size_t rest, Bits held, Index of) const {
    for (std::size_t k = 0; k < digits; ++k)
        if (slot_of(state, k) == rest) held |= Bits{1} << k;
    return space.extents[rest] % saturating_multiply(product(held), of) == 0;
}

void DigitFacts::rename(Slots raw, Slots state, std::array<std::size_t, placed_max>& real) const {
    const std::array<std::size_t, placed_max> before = real;
    for (const Bits group : twins) {
        Bits taken = 0;
        each(group, [&](std::size_t k) {
            bool found = false;
            each(group & ~taken, [&](std::size_t j) {
                if (found || slot_of(raw, j) != slot_of(state, k)) return;
                found = true;
                taken |= Bits{1} << j;
                real[k] = before[j];
            });
        });
    }
}

SummandChange summand_change(std::span<const ChangedDigit> digits, std::size_t idle, std::size_t sums) {
    SummandChange change;
    change.kept = 1;
    Index before = 1;  // summands without the digits that enter a dimension
    Index after = 1;   // summands without the digits that leave one
    std::uint32_t losing = 0;
    for (const ChangedDigit& digit : digits) {
        if (digit.from == sums) change.before *= digit.size;
        if (digit.to == sums) change.after *= digit.size;
        if (digit.to == idle) change.copies *= digit.size;
        if (digit.from == idle && digit.to == idle) change.kept *= digit.size;
        if (digit.from == sums && (digit.to == sums || digit.to == idle)) before *= digit.size;
        if (digit.to == sums && (digit.from == sums || digit.from == idle)) after *= digit.size;
        // Only dimensions with a digit that both ends use, in different dimensions, can add to a part.
        if (digit.cuts(idle, sums) && digit.from != digit.to) losing |= 1u << digit.from;
    }
    change.keepers = std::min(before, after);
    for (std::uint32_t part = losing; part != 0; part = (part - 1) & losing) {
        Index moved = 1;
        for (const ChangedDigit& digit : digits) {
            const bool leaves = digit.cuts(idle, sums) && (part >> digit.from & 1) != 0 && (part >> digit.to & 1) == 0;
            if (leaves && digit.even) moved *= digit.size;
        }
        change.one_in = std::max(change.one_in, moved);
    }
    return change;
}

namespace {

// Slices and fills lead to the target, or one move at least. A digit that is idle, or that the target leaves unreduced,
// needs no move.
Ahead ahead_with_sums(const DigitFacts& facts, const PlacedDigits& from) {
    bool moves = false;
    InlineVector<ChangedDigit, placed_max> digits;
    for (std::size_t k = 0; k < facts.digits; ++k) {
        const std::size_t slot = slot_of(from.state, k);
        moves = moves || (slot != 0 && facts.goal[k] != slot && facts.goal[k] != sums_slot);
        digits.push_back({facts.size[k], slot, facts.goal[k], true});
    }
    if (!moves) return {0, 0};
    const SummandChange change = summand_change({digits.begin(), digits.size()}, 0, sums_slot);
    if (change.before == 1 && change.after == 1)
        return {1, from.conflicts != 0 ? facts.there : facts.there - facts.there / from.astray};
    const Index devices = facts.product(~(~Bits{0} << facts.digits));
    const Index received = least_received(change, facts.space.elements, devices);
    return {1, change.after == 1 ? std::max(facts.there, received) : received};
}

}  // namespace

Ahead ahead_of(const DigitFacts& facts, const PlacedDigits& from, Index tile_max) {
    if (facts.space.sums) return ahead_with_sums(facts, from);
    if (from.wrong == 0) return {0, 0};
    Ahead ahead{2, from.conflicts != 0 ? facts.there : facts.there - facts.there / from.astray};
    bool dealt = true;
    each(from.wrong,
         [&](std::size_t k) { dealt = dealt && facts.goal[k] != 0 && (from.slots >> facts.goal[k] & 1) == 0; });
    if (dealt || (from.slots & ~facts.wanted) == 0) return {1, ahead.elements};
    // Slices before a gather of all wrong digits make its tile smaller.
    Index shards = from.shards / from.astray;
    for (std::size_t k = 0; k < facts.digits; ++k)
        if (facts.goal[k] != 0 && (from.digits >> k & 1) == 0 && (from.slots >> facts.goal[k] & 1) == 0)
            shards *= facts.size[k];
    if (facts.space.elements / shards <= tile_max) ahead.moves = 1;
    return ahead;
}

LastMove last_move(const DigitFacts& facts, const PlacedDigits& from) {
    LastMove last{1, facts.there};
    // A permute empties no slot, so the move is in groups. Each group has all digits that leave.
    const Bits left = from.slots & ~facts.wanted;
    if (left == 0) return last;
    last.messages = from.astray - 1;
    Bits changed = left;
    Bits idle_goals = 0;
    for (std::size_t k = 0; k < facts.digits; ++k) {
        const Bits goal = Bits{1} << facts.goal[k] & ~Bits{1};
        if ((from.digits >> k & 1) == 0) idle_goals |= goal;
        if ((from.wrong >> k & 1) != 0) changed |= goal & ~from.slots;
    }
    // A digit that was idle may cut a goal before the move, so that the number of parts there stays.
    if (idle_goals != 0) changed = left;
    const auto inmost = static_cast<std::size_t>(std::bit_width(changed)) - 1;
    last.run = (facts.rests >> inmost & 1) != 0 ? facts.space.extents[inmost] : 1;
    for (std::size_t slot = inmost + 1; slot < facts.slots; ++slot)
        if ((from.slots >> slot & 1) == 0) last.run *= facts.space.extents[slot];
    return last;
}

}  // namespace reshard
