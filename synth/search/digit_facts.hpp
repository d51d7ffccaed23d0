// Sets of digits: what the states of a digit search are made of.
#pragma once

#include <array>
#include <bit>
#include <span>

#include "synth/search/digit_space.hpp"

namespace reshard {

using Bits = std::uint32_t;  ///< a set of digits, or of slots

/// Calls visit(i) for each bit, from the lowest on.
template <class Visit>
constexpr void each(Bits bits, const Visit& visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<std::size_t>(std::countr_zero(bits)));
}

/// The state with these digits in one slot.
constexpr Slots with_slots(Slots state, Bits digits, std::size_t slot) {
    each(digits, [&](std::size_t k) { state = with_slot(state, k, slot); });
    return state;
}

/// The numbers of a space that states and prices need. Twins are digits of one size and one network level that the
/// target leaves idle, or that it leaves unreduced.
struct DigitFacts {
    /// `level`: the network level of each digit; empty if there is only one.
    explicit DigitFacts(const DigitSpace& of, std::span<const std::uint8_t> level = {});

    [[nodiscard]] Index product(Bits set) const {
        Index product = 1;
        each(set, [&](std::size_t k) { product *= size[k]; });
        return product;
    }

    /// The state with the slots of twins in ascending order.
    [[nodiscard]] Slots sorted(Slots state) const;
    /// The same for all digits of one size: equal if as many digits cut each slot.
    [[nodiscard]] Slots shape(Slots state) const;
    /// True if a rest has room for a digit of this size, beside the digits that it has and those it `held` before a
    /// move.
    [[nodiscard]] bool has_place(Slots state, std::size_t rest, Bits held, Index of) const;
    /// Follows the digits that sorting moved from `raw` to `state`: `real` has the digit in each place.
    void rename(Slots raw, Slots state, std::array<std::size_t, placed_max>& real) const;

    const DigitSpace& space;
    const Slots target = space.target();
    const Bits rests = static_cast<Bits>(space.rests);
    const std::size_t digits;
    const std::size_t slots;
    std::array<Index, placed_max> size{};
    std::array<std::size_t, placed_max> goal{};     ///< the slot at the target
    std::array<Bits, placed_max> accept{};          ///< the slots that a digit can cut
    std::array<Bits, placed_max> twins_before{};    ///< its twins below
    std::array<std::uint8_t, slots_max> goal_of{};  ///< the digit of a slot at the target
    InlineVector<Bits, placed_max> twins;           ///< groups of twins
    Bits wanted = 0;                                ///< the slots that the target cuts
    Bits followed = 0;                              ///< the slots before another slot of the same dimension
    Index shards = 1;                               ///< of the target
    Index there = 1;                                ///< the target's tile
};

/// A state taken apart.
struct PlacedDigits {
    PlacedDigits(const DigitFacts& facts, Slots placed) : state(placed) {
        Slots rest = placed;
        for (std::size_t k = 0; rest != 0; ++k, rest >>= 4) {
            const std::size_t slot = rest & 15;
            if (slot == 0) continue;
            if (slot == sums_slot && facts.space.sums) {
                summands |= Bits{1} << k;
                continue;
            }
            digits |= Bits{1} << k;
            slots |= Bits{1} << slot;
            shards *= facts.size[k];
            if (slot == facts.goal[k]) continue;
            wrong |= Bits{1} << k;
            astray *= facts.size[k];
            if ((facts.wanted >> slot & 1) != 0) conflicts |= Bits{1} << k;
        }
    }

    /// Digits by slot.
    [[nodiscard]] std::array<Bits, slots_max> held() const {
        std::array<Bits, slots_max> held{};
        Slots rest = state;
        for (std::size_t k = 0; rest != 0; ++k, rest >>= 4) held[rest & 15] |= Bits{1} << k;
        held[0] = 0;
        return held;
    }

    Slots state;
    Index shards = 1;
    Index astray = 1;    ///< combinations of the wrong digits
    Bits digits = 0;     ///< that cut something
    Bits summands = 0;   ///< digits that are unreduced
    Bits slots = 0;      ///< that are cut
    Bits wrong = 0;      ///< digits in other slots than at the target
    Bits conflicts = 0;  ///< digits in slots of others
};

/// A digit, and what it cuts in two states. `from` and `to` are numbers of dimensions, or `idle` or `sums` as
/// summand_change gets them.
struct ChangedDigit {
    Index size = 1;
    std::size_t from = 0;
    std::size_t to = 0;
    bool even = true;  ///< the dimension in `from` divides

    [[nodiscard]] bool cuts(std::size_t idle, std::size_t sums) const {
        return from != idle && from != sums && to != idle && to != sums;
    }
};

/// As summand_change of layouts. `idle` and `sums`: the numbers of digits that are idle, and that are unreduced.
[[nodiscard]] SummandChange summand_change(std::span<const ChangedDigit> digits, std::size_t idle, std::size_t sums);

/// The least that is left to do.
struct Ahead {
    Index moves = 0;
    Index elements = 0;
};

/// Bounds for one move behind which only slices by idle digits lead to the target: the least messages, and the most
/// elements of a run of its copies.
struct LastMove {
    Index messages = 1;
    Index run = 1;
};

/// The least moves and received elements from a state to the target. Moves are 0, 1, or 2 for more. Slices before and
/// after a move are free, so one move is enough in three cases only. With sums moves are 0 or 1. Elements are as in
/// Moves::least_to_target.
[[nodiscard]] Ahead ahead_of(const DigitFacts& facts, const PlacedDigits& from, Index tile_max);

[[nodiscard]] LastMove last_move(const DigitFacts& facts, const PlacedDigits& from);

}  // namespace reshard
