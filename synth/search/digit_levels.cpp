#include "synth/search/digit_levels.hpp"

#include "src/price/level_price.hpp"

namespace reshard {

namespace {

std::vector<Index> borders_of(const DigitSpace& space) {
    std::vector<Index> borders;
    const auto add = [&](const Atom& atom) { borders.insert(borders.end(), {atom.stride, atom.stride * atom.size}); };
    std::ranges::for_each(space.digits, add);
    for (const DigitSpace::Part& part : space.parts)
        if (part.kept.size > 1) add(part.kept);
    return borders;
}

InlineVector<Index, levels_max> inside_of(const NetworkDigits& network, std::size_t levels) {
    InlineVector<Index, levels_max> inside;
    for (std::size_t level = 0; level < levels; ++level) inside.push_back(network.devices_inside(level));
    return inside;
}

// Pairs of digits that must have one value. Digits that are fixed may have different values.
class Equations {
public:
    void add(Bits pair) {
        Bits all = pair;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < sets_.size(); ++i) {
            if ((sets_[i] & pair) != 0)
                all |= sets_[i];
            else
                sets_[kept++] = sets_[i];
        }
        while (sets_.size() > kept) sets_.pop_back();
        sets_.push_back(all);
    }

    /// One in so many combinations of the other digits satisfies all equations; 0 if none does at worst.
    [[nodiscard]] Index one_in(Bits fixed, const std::array<Index, placed_max>& size) const {
        Index one_in = 1;
        for (const Bits set : sets_) {
            if (std::popcount(set & fixed) > 1) return 0;
            int decided = std::popcount(set & ~fixed) - ((set & fixed) == 0 ? 1 : 0);
            for (; decided > 0; --decided) one_in *= size[static_cast<std::size_t>(std::countr_zero(set))];
        }
        return one_in;
    }

private:
    InlineVector<Bits, placed_max> sets_;
};

}  // namespace

DigitNetwork::DigitNetwork(const DigitSpace& space, const Machine& machine)
    : digits(space.like->mesh, borders_of(space), machine), exact(digits.exact()) {
    for (std::size_t k = 0; k < space.digits.size(); ++k) {
        exact = exact && digits.exact(space.digits[k]);
        if (k < level.size()) level[k] = static_cast<std::uint8_t>(digits.level(space.digits[k]));
    }
}

DigitLevels::DigitLevels(const DigitFacts& facts, const DigitNetwork& network, const Machine& machine)
    : facts_(facts), network_(network.digits), machine_(machine), element_(size_of(facts.space.like->dtype)) {
    const std::size_t levels = machine.levels.size();
    for (std::size_t level = 0; level < levels; ++level)
        for (std::size_t k = 0; k < facts.digits; ++k)
            if (network.level[k] <= level) within_[level] |= Bits{1} << k;
    if (levels == 1) return;
    floor_.emplace(machine, inside_of(network_, levels), element_);
    if (!floor_->known()) floor_.reset();
    for (std::size_t level = 0; floor_ && level < levels; ++level) {
        const std::size_t unit = floor_->unit_level(level);
        times_[level] = floor_->unit_devices(level) / facts.product(unit == 0 ? 0 : within_[unit - 1]);
    }
}

Index DigitLevels::group_picoseconds(Bits group, Index load) const {
    const Index others = std::max<Index>(facts_.product(group) - 1, 1);
    Index time = 0;
    Index inner = 1;
    for (std::size_t level = 0; level < machine_.levels.size(); ++level) {
        const Index reached = facts_.product(group & within_[level]);
        const Index members = reached - inner;
        inner = reached;
        if (members == 0) continue;
        const bool shared = level > 0 && machine_.levels[level].shared;
        const Index block = shared ? network_.devices_inside(level) : 1;
        const Index elements = scale_up(saturating_multiply(load, block), members, others);
        time = saturating_add(
            time, level_picoseconds(machine_.levels[level], elements, ceil_divide(load, others), members, element_));
    }
    return time;
}

// Digits that stay in a rest keep their places, and the others follow each other in order.
Index DigitLevels::permute_picoseconds(const PlacedDigits& before, const PlacedDigits& after) const {
    const Held held = before.held();
    const Held next = after.held();
    LevelTraffic& traffic = traffic_;
    traffic.clear();
    for (std::size_t slot = 1; slot < facts_.slots; ++slot) {
        Bits leaving = held[slot] & ~next[slot];
        Bits entering = next[slot] & ~held[slot];
        for (; (leaving | entering) != 0; leaving &= leaving - 1, entering &= entering - 1)
            traffic.match(atoms_of(leaving & -leaving), atoms_of(entering & -entering));
    }
    traffic.replicate(atoms_of(after.digits & ~before.digits), atoms_of(before.digits & ~after.digits));
    std::array<Index, levels_max> elements{};
    std::array<Index, levels_max> pair{};
    const std::size_t levels = machine_.levels.size();
    const Index tile = facts_.space.elements / before.shards;
    traffic.raise_permute(tile, machine_, {elements.data(), levels}, {pair.data(), levels});
    if (!traffic.exact()) return least_picoseconds(before, after, 0);
    Index time = 0;
    for (std::size_t level = 0; level < levels; ++level)
        time =
            saturating_add(time, level_picoseconds(machine_.levels[level], elements[level], pair[level], 1, element_));
    return time;
}

AtomList DigitLevels::atoms_of(Bits digits) const {
    AtomList atoms;
    each(digits, [&](std::size_t k) { atoms.push_back(facts_.space.digits[k]); });
    return atoms;
}

Index DigitLevels::least_picoseconds(const PlacedDigits& held, const PlacedDigits& wanted, Index received) const {
    if (!floor_) return 0;
    const Held have = held.held();
    const Held want = wanted.held();
    return floor_->picoseconds([&](std::size_t level) {
        return floor_->unit_level(level) == 0 ? received : entering(level, have, wanted, want);
    });
}

// The digits that leave a rest, without as many as digits of their size enter it. A digit may take the place of another
// one, and then some block holds all that it wants there.
Bits DigitLevels::without_heirs(Bits leaving, Bits entering) const {
    each(entering, [&](std::size_t heir) {
        bool found = false;
        each(leaving, [&](std::size_t k) {
            if (found || facts_.size[k] != facts_.size[heir]) return;
            found = true;
            leaving &= ~(Bits{1} << k);
        });
    });
    return leaving;
}

// The elements of a block that its devices want and hold are a product over slots. Two digits beyond the block that cut
// one slot have the same value in some blocks of a unit, and in no other block its devices hold anything they want.
Index DigitLevels::entering(std::size_t level, const Held& held, const PlacedDigits& wanted, const Held& want) const {
    const Bits outside = beyond(level);
    const Bits fixed = beyond(floor_->unit_level(level));
    const Bits all = (Bits{1} << facts_.digits) - 1;
    const Index blocks = facts_.product(all & outside & ~fixed);
    const Index wants = facts_.space.elements / facts_.product(wanted.digits & outside);
    Index common = wants;
    Equations equations;
    for (std::size_t slot = 1; slot < facts_.slots; ++slot) {
        const Bits from = held[slot] & outside;
        const Bits to = want[slot] & outside;
        if (from == to) continue;
        if (is_rest(slot) || to == 0)
            common = ceil_divide(common, facts_.product(without_heirs(from & ~to, to & ~from)));
        else if (from != 0)
            equations.add(from | to);
    }
    const Index one_in = equations.one_in(fixed, facts_.size);
    const Index has = one_in == 0 ? 0 : saturating_multiply(blocks / one_in, common);
    return saturating_multiply(std::max<Index>(saturating_multiply(blocks, wants) - has, 0), times_[level]);
}

}  // namespace reshard
