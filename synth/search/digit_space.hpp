// A problem in digits of the mesh, each in at most one slot. A slot is a digit of a dimension, or the rest of one. One
// more slot holds the set of unreduced digits.
#pragma once

#include <optional>
#include <vector>

#include "reshard/planner/step.hpp"
#include "reshard/problem.hpp"
#include "synth/search/inline_vector.hpp"

namespace reshard {

/// The slot that each digit cuts, four bits a digit; 0 for none. The rest of a dimension holds a set of digits, since
/// the view splits it as the digits need.
using Slots = std::uint64_t;

inline constexpr std::size_t placed_max = 16;  ///< digits in `Slots`
inline constexpr std::size_t slots_max = 16;   ///< slots in `Slots`, with slot 0
inline constexpr std::size_t sums_slot = 15;   ///< of unreduced digits, if the problem has sums

[[nodiscard]] constexpr std::size_t slot_of(Slots state, std::size_t digit) { return state >> 4 * digit & 15; }
[[nodiscard]] constexpr Slots with_slot(Slots state, std::size_t digit, std::size_t slot) {
    return (state & ~(Slots{15} << 4 * digit)) | static_cast<Slots>(slot) << 4 * digit;
}

inline constexpr std::size_t digits_in_space_max = 40;
inline constexpr std::size_t slots_in_space_max = 48;
inline constexpr std::uint8_t unreduced = 255;  ///< the same slot in `DigitSpace`

/// Digits that are kept cut one place at both ends, and have no place in the states.
struct DigitSpace {
    /// A digit of a dimension of the view, major to minor.
    struct Part {
        std::size_t dim = 0;  ///< of the problem
        Index extent = 1;
        std::size_t slot = 0;  ///< 0 if it keeps its atom
        Atom kept;             ///< size 1: none
    };
    const Layout* like = nullptr;  ///< dtype and mesh
    InlineVector<Atom, digits_in_space_max> digits;
    InlineVector<std::uint8_t, digits_in_space_max> from;  ///< the slot of each digit at the source
    InlineVector<std::uint8_t, digits_in_space_max> to;    ///< and at the target
    InlineVector<Index, slots_in_space_max> extents;       ///< by slot
    std::vector<Part> parts;                               ///< rests may share one slot
    std::uint64_t rests = 0;                               ///< the slots that hold sets of digits, as bits
    Index elements = 1;                                    ///< of a tile that no digit cuts
    bool sums = false;                                     ///< some end has unreduced digits
    Reduction reduction = Reduction::sum;                  ///< of the unreduced digits on the way

    [[nodiscard]] bool is_rest(std::size_t slot) const { return (rests >> slot & 1) != 0; }
    /// `Slots` can hold its states.
    [[nodiscard]] bool packs() const {
        const std::size_t taken = sums ? 1 : 0;
        return digits.size() + taken <= placed_max && extents.size() + taken <= slots_max;
    }
    [[nodiscard]] Slots source() const { return packed(from); }  ///< pre: packs()
    [[nodiscard]] Slots target() const { return packed(to); }    ///< pre: packs()

private:
    [[nodiscard]] static Slots packed(const InlineVector<std::uint8_t, digits_in_space_max>& slots) {
        Slots state = 0;
        for (std::size_t k = 0; k < slots.size(); ++k)
            state = with_slot(state, k, slots[k] == unreduced ? sums_slot : slots[k]);
        return state;
    }
};

/// The most orders of the primes of one axis.
inline constexpr Index orders_max = 24;

/// The number of ways to cut the axes of a problem into primes: an axis of 6 is 2 x 3 or 3 x 2. 0 if an atom crosses
/// the borders of another, or if digits or orders of one axis are too many.
[[nodiscard]] Index digit_orders(const Problem& problem);

/// The problem in the prime digits of one order; in order 0 the least primes come first. nullopt in four cases: an end
/// does not divide; the cuts of a dimension do not align; nothing moves; digits or slots are too many.
/// `keeps`: digits that cut one place at both ends stay there. pre: order < digit_orders(problem).
[[nodiscard]] std::optional<DigitSpace> make_digit_space(const Problem& problem, Index order, bool keeps = true);

/// The same space with one slot for the rests of all dimensions. pre: the digits are prime.
[[nodiscard]] DigitSpace with_one_rest(DigitSpace space);

/// The same problem with neighbouring digits as one, if they are neighbours at each end that uses them. It has fewer
/// states, and its best plan need not be the best.
[[nodiscard]] DigitSpace in_fewer_digits(const DigitSpace& space);

/// Steps between states of a digit space.
struct DigitPath {
    std::vector<StepKind> kinds;
    std::vector<Slots> states;  ///< after each step
};

/// A path in a view: its layouts, the source's first, and the extents of the digits of each dimension.
struct PathInView {
    std::vector<std::vector<Index>> parts;  ///< by dimension
    std::vector<Layout> layouts;
};

/// The path from the source in the view that its rests need. An all-to-all never gives a rest the digit of the view
/// that it takes from another digit of the mesh, and a permute gives no other. pre: space.packs(), and no end of the
/// path cuts a rest.
[[nodiscard]] PathInView in_view(const DigitSpace& space, const DigitPath& path);

}  // namespace reshard
