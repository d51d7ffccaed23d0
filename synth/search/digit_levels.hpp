// The traffic of steps between placements of digits, over each level of a network.
#pragma once

#include "src/price/level_traffic.hpp"
#include "synth/search/digit_facts.hpp"
#include "synth/search/level_floor.hpp"

namespace reshard {

/// The levels of a network that the digits of a space cross.
struct DigitNetwork {
    DigitNetwork(const DigitSpace& space, const Machine& machine);

    NetworkDigits digits;
    std::array<std::uint8_t, placed_max> level{};  ///< of each digit of the space
    bool exact = true;                             ///< no block of the machine parts a digit
};

/// The traffic of steps, as the judge has it, and a lower bound for all steps.
class DigitLevels {
public:
    /// pre: network.exact
    DigitLevels(const DigitFacts& facts, const DigitNetwork& network, const Machine& machine);

    /// The time on the levels of a gather or an all-to-all inside groups of these digits. Each device receives `load`
    /// elements, the same number from each other member of its group.
    [[nodiscard]] Index group_picoseconds(Bits group, Index load) const;
    /// The time on the levels of a permute. A lower bound if no closed form holds.
    [[nodiscard]] Index permute_picoseconds(const PlacedDigits& before, const PlacedDigits& after) const;
    /// A lower bound for the levels, over all steps between the states, if some device receives `received` elements.
    [[nodiscard]] Index least_picoseconds(const PlacedDigits& held, const PlacedDigits& wanted, Index received) const;

private:
    using Held = std::array<Bits, slots_max>;
    [[nodiscard]] Index entering(std::size_t level, const Held& held, const PlacedDigits& wanted,
                                 const Held& want) const;
    [[nodiscard]] Bits without_heirs(Bits leaving, Bits entering) const;
    [[nodiscard]] AtomList atoms_of(Bits digits) const;
    [[nodiscard]] bool is_rest(std::size_t slot) const { return (facts_.rests >> slot & 1) != 0; }
    [[nodiscard]] Bits beyond(std::size_t level) const { return level == 0 ? ~Bits{0} : ~within_[level - 1]; }

    const DigitFacts& facts_;
    const NetworkDigits& network_;
    mutable LevelTraffic traffic_{network_};
    const Machine& machine_;
    const Index element_;
    std::array<Bits, levels_max> within_{};  // by level: the digits that it and the levels inside it reach
    std::array<Index, levels_max> times_{};  // by level: units that digits outside of the space make, and their tiles
    std::optional<LevelFloor> floor_;
};

}  // namespace reshard
