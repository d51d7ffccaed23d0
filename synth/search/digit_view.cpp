// Digit spaces in fewer digits, and paths as layouts.
#include <algorithm>
#include <functional>

#include "synth/search/digit_space.hpp"

namespace reshard {

namespace {

using Numbers = std::array<std::uint8_t, slots_in_space_max>;  // of slots

std::uint8_t renumbered(std::uint8_t slot, const Numbers& number) {
    return slot == unreduced ? unreduced : number[slot];
}

class Joiner {
public:
    explicit Joiner(const DigitSpace& space) : space_(space) {
        for (std::size_t p = 0; p < space.parts.size(); ++p) part_of_[space.parts[p].slot] = p;
        for (std::size_t k = 0; k + 1 < space.digits.size(); ++k) joined_[k] = neighbours(k);
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t k = 0; k + 1 < space.digits.size(); ++k)
                if (joined_[k] && !holds(k)) changed = !(joined_[k] = false);
        }
    }

    [[nodiscard]] DigitSpace made() const {
        DigitSpace fewer;
        fewer.like = space_.like;
        fewer.elements = space_.elements;
        fewer.sums = space_.sums;
        fewer.reduction = space_.reduction;
        Numbers number{};
        append_parts(fewer, number);
        for (std::size_t k = 0; k < space_.digits.size(); ++k) {
            const Atom digit = space_.digits[k];
            if (k > 0 && joined_[k - 1]) {
                Atom& major = fewer.digits.back();
                major = {major.size * digit.size, digit.stride};
                continue;
            }
            fewer.digits.push_back(digit);
            fewer.from.push_back(renumbered(space_.from[k], number));
            fewer.to.push_back(renumbered(space_.to[k], number));
        }
        return fewer;
    }

private:
    // The slot of digit `k + 1` is next to the slot of digit `k` at each end that uses them.
    [[nodiscard]] bool neighbours(std::size_t k) const {
        const Atom& major = space_.digits[k];
        const Atom& minor = space_.digits[k + 1];
        if (major.stride != minor.stride * minor.size) return false;
        for (const auto* end : {&space_.from, &space_.to}) {
            const std::size_t one = (*end)[k];
            const std::size_t other = (*end)[k + 1];
            if ((one == 0) != (other == 0)) return false;
            if ((one == unreduced) != (other == unreduced)) return false;
            if (one != 0 && one != unreduced && !adjoin(one, other)) return false;
        }
        return true;
    }

    [[nodiscard]] bool adjoin(std::size_t slot, std::size_t next) const {
        return part_of_[next] == part_of_[slot] + 1 &&
               space_.parts[part_of_[slot]].dim == space_.parts[part_of_[next]].dim;
    }

    // No end has a border between the slots of digits `k` and `k + 1`.
    [[nodiscard]] bool holds(std::size_t k) const {
        for (const auto* end : {&space_.from, &space_.to})
            if ((*end)[k] != 0 && (*end)[k] != unreduced && !joins((*end)[k])) return false;
        return true;
    }

    [[nodiscard]] bool joins(std::size_t slot) const {
        for (const auto* end : {&space_.from, &space_.to}) {
            const std::size_t one = digit_in(*end, slot);
            const std::size_t other = digit_in(*end, slot + 1);
            const bool none = one == space_.digits.size() && other == space_.digits.size();
            if (!none && (other != one + 1 || other == space_.digits.size() || !joined_[one])) return false;
        }
        return true;
    }

    using End = InlineVector<std::uint8_t, digits_in_space_max>;
    [[nodiscard]] static std::size_t digit_in(const End& end, std::size_t slot) {
        return static_cast<std::size_t>(std::find(end.begin(), end.end(), slot) - end.begin());
    }

    // Also numbers the slots. Slots that become one have one number.
    void append_parts(DigitSpace& fewer, Numbers& number) const {
        fewer.extents.push_back(1);
        for (std::size_t p = 0; p < space_.parts.size(); ++p) {
            DigitSpace::Part part = space_.parts[p];
            if (part.slot == 0) {
                fewer.parts.push_back(part);
                continue;
            }
            const bool rest = space_.is_rest(part.slot);
            const bool more = part.slot > 1 && adjoin(part.slot - 1, part.slot) && !rest && joins(part.slot - 1);
            if (more) {
                fewer.extents.back() *= part.extent;
                fewer.parts.back().extent *= part.extent;
                number[part.slot] = static_cast<std::uint8_t>(fewer.extents.size() - 1);
                continue;
            }
            number[part.slot] = static_cast<std::uint8_t>(fewer.extents.size());
            if (rest) fewer.rests |= std::uint64_t{1} << fewer.extents.size();
            part.slot = fewer.extents.size();
            fewer.extents.push_back(part.extent);
            fewer.parts.push_back(part);
        }
    }

    const DigitSpace& space_;
    std::array<std::size_t, slots_in_space_max> part_of_{};  // by slot
    std::array<bool, digits_in_space_max> joined_{};         // digits k and k + 1 become one
};

// A digit of a rest.
struct Seat {
    Index size = 1;
    std::size_t digit = placed_max;  // that cuts it now; placed_max: none
};

// The digits that a path needs each rest to have, and which digit of the mesh cuts each of them in each state.
class Seating {
public:
    explicit Seating(const DigitSpace& space) : space_(space) {}

    // The slot that each seat of a rest holds after the state.
    void pass(Slots before, StepKind kind, Slots after) {
        for (std::size_t rest = 1; rest < space_.extents.size(); ++rest) {
            if (!space_.is_rest(rest)) continue;
            std::vector<Seat>& seats = seats_[rest];
            std::vector<bool> left(seats.size(), false);
            for (std::size_t i = 0; i < seats.size(); ++i) {
                if (seats[i].digit == placed_max || slot_of(after, seats[i].digit) == rest) continue;
                seats[i].digit = placed_max;
                left[i] = true;
            }
            for (std::size_t k = 0; k < space_.digits.size(); ++k)
                if (slot_of(after, k) == rest && slot_of(before, k) != rest) sit(seats, left, kind, k);
        }
    }

    [[nodiscard]] const std::vector<Seat>& seats(std::size_t rest) const { return seats_[rest]; }

private:
    // A permute fills the seats that it empties. Other steps fill seats that were empty.
    void sit(std::vector<Seat>& seats, const std::vector<bool>& left, StepKind kind, std::size_t digit) const {
        std::size_t at = 0;
        const auto fits = [&] {
            const bool emptied = at < left.size() && left[at];
            return seats[at].digit == placed_max && seats[at].size == space_.digits[digit].size &&
                   emptied == (kind == StepKind::permute);
        };
        while (at < seats.size() && !fits()) ++at;
        if (at == seats.size()) seats.push_back({space_.digits[digit].size});
        seats[at].digit = digit;
    }

    const DigitSpace& space_;
    std::array<std::vector<Seat>, slots_max> seats_;
};

// The number of the last state that cuts the seat.
std::size_t last_cut(const std::vector<Seating>& seatings, std::size_t slot, std::size_t seat) {
    std::size_t last = seatings.size();
    const auto is_cut = [&](const std::vector<Seat>& seats) {
        return seat < seats.size() && seats[seat].digit != placed_max;
    };
    while (last > 0 && !is_cut(seatings[last - 1].seats(slot))) --last;
    return last;
}

// The seats of each part. Rests that share a slot share its seats. A seat that is cut for longer is more major, so that
// a path needs fewer digits.
std::vector<std::vector<std::size_t>> seats_by_part(const DigitSpace& space, const std::vector<Seating>& seatings) {
    const Seating& seating = seatings.back();
    std::vector<std::vector<std::size_t>> by_part(space.parts.size());
    std::array<std::vector<bool>, slots_max> taken;
    for (std::size_t p = 0; p < space.parts.size(); ++p) {
        const std::size_t slot = space.parts[p].slot;
        if (!space.is_rest(slot)) continue;
        const std::vector<Seat>& seats = seating.seats(slot);
        taken[slot].resize(seats.size());
        Index left = space.parts[p].extent;
        for (std::size_t i = 0; i < seats.size(); ++i) {
            if (taken[slot][i] || left % seats[i].size != 0) continue;
            taken[slot][i] = true;
            left /= seats[i].size;
            by_part[p].push_back(i);
        }
        std::ranges::stable_sort(by_part[p], std::greater{},
                                 [&](std::size_t i) { return last_cut(seatings, slot, i); });
    }
    return by_part;
}

// The digits in a slot, as a set.
AtomList atoms_in(const DigitSpace& space, Slots state, std::size_t slot) {
    AtomList atoms;
    for (std::size_t k = 0; k < space.digits.size(); ++k)
        if (slot_of(state, k) == slot) atoms.push_back(space.digits[k]);
    return as_set(std::move(atoms));
}

}  // namespace

DigitSpace with_one_rest(DigitSpace space) {
    Numbers number{};
    InlineVector<Index, slots_in_space_max> extents;
    extents.push_back(1);
    std::size_t rest = 0;
    for (std::size_t slot = 1; slot < space.extents.size(); ++slot) {
        if (space.is_rest(slot) && rest != 0) {
            extents[rest] *= space.extents[slot];
            number[slot] = static_cast<std::uint8_t>(rest);
            continue;
        }
        number[slot] = static_cast<std::uint8_t>(extents.size());
        if (space.is_rest(slot)) rest = extents.size();
        extents.push_back(space.extents[slot]);
    }
    for (DigitSpace::Part& part : space.parts) part.slot = number[part.slot];
    for (std::size_t k = 0; k < space.digits.size(); ++k) {
        space.from[k] = renumbered(space.from[k], number);
        space.to[k] = renumbered(space.to[k], number);
    }
    space.extents = extents;
    space.rests = rest == 0 ? 0 : std::uint64_t{1} << rest;
    return space;
}

DigitSpace in_fewer_digits(const DigitSpace& space) { return Joiner(space).made(); }

PathInView in_view(const DigitSpace& space, const DigitPath& path) {
    std::vector<Slots> states = {space.source()};
    std::vector<Seating> seatings = {Seating(space)};
    for (std::size_t i = 0; i < path.states.size(); ++i) {
        seatings.push_back(seatings.back());
        seatings.back().pass(states.back(), path.kinds[i], path.states[i]);
        states.push_back(path.states[i]);
    }
    const Seating& all = seatings.back();
    const auto by_part = seats_by_part(space, seatings);
    PathInView seen;
    for (std::size_t i = 0; i < states.size(); ++i) {
        Layout& layout = seen.layouts.emplace_back(*space.like);
        layout.dims.clear();
        layout.reduction = space.reduction;
        layout.unreduced = atoms_in(space, states[i], sums_slot);
        for (std::size_t p = 0; p < space.parts.size(); ++p) {
            const DigitSpace::Part& part = space.parts[p];
            Index left = part.extent;
            for (const std::size_t seat : by_part[p]) {
                const Seat& last = all.seats(part.slot)[seat];
                const auto& seats = seatings[i].seats(part.slot);
                const std::size_t digit = seat < seats.size() ? seats[seat].digit : placed_max;
                layout.dims.emplace_back(last.size, digit == placed_max ? AtomList{} : AtomList{space.digits[digit]});
                left /= last.size;
            }
            AtomList atoms;
            if (part.kept.size > 1) atoms.push_back(part.kept);
            if (part.slot != 0 && !space.is_rest(part.slot))
                for (const Atom& digit : atoms_in(space, states[i], part.slot)) atoms.push_back(digit);
            layout.dims.emplace_back(left, std::move(atoms));
        }
    }
    for (std::size_t p = 0; p < space.parts.size(); ++p) {
        const DigitSpace::Part& part = space.parts[p];
        seen.parts.resize(part.dim + 1);
        Index left = part.extent;
        for (const std::size_t seat : by_part[p]) {
            seen.parts[part.dim].push_back(all.seats(part.slot)[seat].size);
            left /= seen.parts[part.dim].back();
        }
        seen.parts[part.dim].push_back(left);
    }
    return seen;
}

}  // namespace reshard
