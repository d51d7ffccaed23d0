#include "synth/search/digit_facts.hpp"

namespace reshard {

DigitFacts::DigitFacts(const DigitSpace& of) : space(of), digits(of.digits.size()), slots(of.extents.size()) {
    for (std::size_t k = 0; k < digits; ++k) {
        size[k] = space.digits[k].size;
        goal[k] = space.to[k];
        wanted |= Bits{1} << goal[k];
        goal_of[goal[k]] = static_cast<std::uint8_t>(k);
        for (std::size_t i = 1; i < slots; ++i) {
            if (space.is_rest(i) ? space.extents[i] % size[k] == 0 : space.extents[i] == size[k])
                accept[k] |= Bits{1} << i;
        }
    }
    wanted &= ~Bits{1};
    for (std::size_t k = 0; k < digits; ++k)
        if (goal[k] != 0) shards *= size[k];
    there = space.elements / shards;
    for (std::size_t p = 0; p + 1 < space.parts.size(); ++p) {
        const DigitSpace::Part& part = space.parts[p];
        const DigitSpace::Part& next = space.parts[p + 1];
        if (part.slot != 0 && next.slot != 0 && part.dim == next.dim) followed |= Bits{1} << part.slot;
    }
    // Digits of one size that the target leaves idle.
    for (std::size_t k = 0; k < digits; ++k) {
        if (goal[k] != 0) continue;
        std::size_t group = 0;
        while (group < twins.size() && size[std::countr_zero(twins[group])] != size[k]) ++group;
        if (group == twins.size()) twins.push_back(0);
        twins_before[k] = twins[group];
        twins[group] |= Bits{1} << k;
    }
}

Ahead ahead_of(const DigitFacts& facts, const PlacedDigits& from, Index tile_max) {
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

}  // namespace reshard
