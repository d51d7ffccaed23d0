// The traffic of an exchange over each level of the network, in closed form.
#include <algorithm>

#include "src/price/level_traffic.hpp"

namespace reshard {

namespace {

// The least prime factor, or n when that is over 2^16.
Index least_factor(Index n) {
    for (Index p = 2; p <= n / p && p < (Index{1} << 16); ++p)
        if (n % p == 0) return p;
    return n;
}

bool overlap(Atom a, Atom b) { return a.stride < b.stride * b.size && b.stride < a.stride * a.size; }

}  // namespace

void LevelTraffic::clear() {
    places_.clear();
    replicas_.clear();
    holders_ = 0;
    exact_ = true;
}

LevelTraffic::Digit LevelTraffic::digit(Atom atom) {
    exact_ = exact_ && network_.exact(atom);
    return {atom, network_.level(atom)};
}

void LevelTraffic::match(std::span<const Atom> before, std::span<const Atom> after) {
    if (places_.empty()) places_.reserve(16);
    std::size_t i = 0;
    std::size_t j = 0;
    Atom holder = before.empty() ? Atom{} : before[0];
    Atom wanter = after.empty() ? Atom{} : after[0];
    const auto add = [&](Atom b, Atom a, bool aligned) {
        if (b == a) return;  // the same digit agrees with itself
        Place place{{}, {}, aligned};
        if (b.size > 1) place.holder = digit(b);
        if (a.size > 1) place.wanter = digit(a);
        places_.push_back(place);
    };
    // The most major part of a digit that is cut to a size.
    const auto lead = [](Atom& atom, Index size) {
        atom.size /= size;
        return Atom{size, atom.size * atom.stride};
    };
    bool aligned = true;
    while (i < before.size() && j < after.size()) {
        aligned = holder.size % wanter.size == 0 || wanter.size % holder.size == 0;
        if (!aligned) break;
        const Index size = least_factor(std::min(holder.size, wanter.size));  // what a border may part is not one digit
        const Atom b = lead(holder, size);
        add(b, lead(wanter, size), true);
        if (holder.size == 1 && ++i < before.size()) holder = before[i];
        if (wanter.size == 1 && ++j < after.size()) wanter = after[j];
    }
    exact_ = exact_ && aligned;
    for (; i < before.size(); holder = ++i < before.size() ? before[i] : holder)
        while (holder.size > 1) add(lead(holder, least_factor(holder.size)), {}, aligned);
    for (; j < after.size(); wanter = ++j < after.size() ? after[j] : wanter)
        while (wanter.size > 1) add({}, lead(wanter, least_factor(wanter.size)), aligned);
}

void LevelTraffic::add_replicas(std::span<const Atom> atoms) {
    for (Atom atom : atoms)
        while (atom.size > 1) {
            const Index size = least_factor(atom.size);
            atom.size /= size;
            replicas_.push_back(digit({size, atom.size * atom.stride}));
        }
}

void LevelTraffic::replicate(std::span<const Atom> before, std::span<const Atom> after) {
    add_replicas(before);
    holders_ = replicas_.size();
    add_replicas(after);
}

// The components know whether a digit beyond the block is among them.
class LevelTraffic::Agreement {
public:
    explicit Agreement(std::vector<Node>& nodes) : nodes_(nodes) {
        nodes_.clear();
        nodes_.reserve(16);  // more than most searches have digits
    }
    /// True when it joins two components that have digits beyond the block.
    bool join(Atom a, bool a_beyond, Atom b, bool b_beyond) {
        const std::size_t one = root(node(a, a_beyond));
        const std::size_t other = root(node(b, b_beyond));
        if (one == other) return false;
        const bool both = nodes_[one].beyond && nodes_[other].beyond;
        nodes_[other].parent = one;
        nodes_[one].beyond = nodes_[one].beyond || nodes_[other].beyond;
        return both;
    }
    /// Combinations of the digits inside the block: each has one value where all agree.
    [[nodiscard]] Index decided() const { return decided_; }

private:
    std::size_t node(Atom atom, bool beyond) {
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (nodes_[i].atom == atom) return i;
        if (!beyond) decided_ = saturating_multiply(decided_, atom.size);
        nodes_.push_back({atom, nodes_.size(), beyond});
        return nodes_.size() - 1;
    }
    [[nodiscard]] std::size_t root(std::size_t at) const {
        while (nodes_[at].parent != at) at = nodes_[at].parent;
        return at;
    }

    std::vector<Node>& nodes_;
    Index decided_ = 1;
};

template <class Outer, class Inner>
LevelTraffic::Agreeing LevelTraffic::agreeing(std::size_t level, bool shared, const Outer& outer, const Inner& inner) {
    const Index block = shared ? network_.devices_inside(level) : 1;
    const auto beyond = [&](const Digit& digit) { return !shared || digit.level >= level; };
    Agreeing made;
    if (std::ranges::none_of(places_, inner)) {  // no place is inner
        made.outer = made.inner = block;
        return made;
    }
    Agreement agreement(nodes_);
    for (const bool within : {true, false}) {
        for (const Place& place : places_) {
            if (within ? !outer(place) : outer(place) || !inner(place)) continue;
            if (!place.aligned) made.avoidable = made.avoidable || !within;
            if (place.holder.atom.size == 1 || place.wanter.atom.size == 1) continue;
            const bool joined =
                agreement.join(place.holder.atom, beyond(place.holder), place.wanter.atom, beyond(place.wanter));
            made.avoidable = made.avoidable || (joined && !within);
        }
        (within ? made.outer : made.inner) = block / agreement.decided();
    }
    return made;
}

// The elements of a tile of one end that agree with a device of the other in the digits that this end has not: within
// the level, and inside it.
LevelTraffic::Parts LevelTraffic::parts(Index tile, Digit Place::*own, Digit Place::*other, const auto& outer,
                                        const auto& inner) const {
    Index within = tile;
    Index inside = tile;
    for (const Place& place : places_) {
        if ((place.*own).atom.size > 1 || !place.aligned) continue;
        if (outer(place)) within = ceil_divide(within, (place.*other).atom.size);
        if (inner(place)) inside = ceil_divide(inside, (place.*other).atom.size);
    }
    return {within, inside};
}

// A device finds the part of its tile within a border whose holders agree with it in all digits beyond that. The
// busiest one finds as much as can be within the level, and nothing inside it where that can be.
Index LevelTraffic::received(std::size_t level, bool shared, Index wanted) {
    const auto outer = [&](const Place& place) { return place.holder.atom.size > 1 && place.holder.level > level; };
    const auto inner = [&](const Place& place) { return place.holder.atom.size > 1 && place.holder.level >= level; };
    const auto [within, inside] = parts(wanted, &Place::wanter, &Place::holder, outer, inner);
    const Agreeing agreed = agreeing(level, shared, outer, inner);
    const Index near = agreed.avoidable ? 0 : saturating_multiply(inside, agreed.inner);
    return std::max<Index>(saturating_multiply(within, agreed.outer) - near, 0);
}

// All that devices within the level want of a tile, without what those want that find it inside, shared by its holders
// within the level.
Index LevelTraffic::sent(std::size_t level, bool shared, Index held) {
    const auto serves = [&](const Digit& digit) {
        return std::ranges::any_of(holders(), [&](const Digit& one) { return overlap(one.atom, digit.atom); });
    };
    const auto outer = [&](const Place& place) { return place.wanter.atom.size > 1 && place.wanter.level > level; };
    const auto inner = [&](const Place& place) {
        return outer(place) || (place.wanter.atom.size > 1 && place.wanter.level == level && !serves(place.wanter));
    };
    auto [within, inside] = parts(held, &Place::holder, &Place::wanter, outer, inner);
    for (const Digit& digit : wanters()) {
        if (digit.level <= level) within = saturating_multiply(within, digit.atom.size);
        if (digit.level < level) inside = saturating_multiply(inside, digit.atom.size);
    }
    Index sharers = 1;
    for (const Digit& digit : holders())
        if (digit.level <= level) sharers *= digit.atom.size;
    const Agreeing agreed = agreeing(level, shared, outer, inner);
    const Index all = ceil_divide(within, sharers);
    if (agreed.avoidable) {
        exact_ = exact_ && within % sharers == 0;
        return saturating_multiply(all, agreed.outer);
    }
    const Index rest = std::max<Index>(within - inside, 0);
    exact_ = exact_ && rest % sharers == 0 && (agreed.inner == agreed.outer || within % sharers == 0);
    return saturating_add(saturating_multiply(all, agreed.outer - agreed.inner),
                          saturating_multiply(ceil_divide(rest, sharers), agreed.inner));
}

// Digits that overlap and are not the same agree in part, which the graph does not know.
void LevelTraffic::look_for_overlaps() {
    seen_.clear();
    for (const Place& place : places_)
        for (const Digit* digit : {&place.holder, &place.wanter}) {
            if (!exact_) return;
            if (digit->atom.size == 1 || std::ranges::find(seen_, digit->atom) != seen_.end()) continue;
            exact_ = std::ranges::none_of(seen_, [&](Atom atom) { return overlap(atom, digit->atom); });
            seen_.push_back(digit->atom);
        }
}

// Within a block that has holders and wanters, all of the fewer are paired. A tile has both in one block beyond a
// level, unless a digit that both have says otherwise.
void LevelTraffic::raise_permute(Index tile, const Machine& machine, std::span<Index> elements, std::span<Index> pair) {
    if (replicas_.empty()) return raise(tile, tile, machine, elements, pair);
    look_for_overlaps();
    const auto paired = [&](std::size_t levels) {
        Index least = index_max;
        for (const auto& digits : {holders(), wanters()}) {
            Index devices = 1;
            for (const Digit& digit : digits)
                if (digit.level < levels) devices *= digit.atom.size;
            least = std::min(least, devices);
        }
        return least;
    };
    const auto place_number = [&](const Place& place) { return Atom{1, &place - places_.data() + 1}; };
    for (std::size_t i = 0; i < machine.levels.size(); ++i) {
        Agreement agreement(nodes_);
        bool moves = paired(i + 1) > paired(i);
        for (const bool beyond : {true, false})
            for (const Place& place : places_) {
                moves = moves || !place.aligned;
                for (const Place& other : places_) {
                    const Digit& both = place.holder;
                    if (both.atom.size == 1 || both.atom != other.wanter.atom) continue;
                    if (beyond ? both.level <= i : both.level != i) continue;
                    const bool joined = agreement.join(place_number(place), true, place_number(other), true);
                    moves = moves || (joined && !beyond);
                }
            }
        const bool shared = i > 0 && machine.levels[i].shared;
        exact_ = exact_ && !(moves && shared);  // which of them are paired where is not looked at
        pair[i] = moves ? tile : 0;
        elements[i] = saturating_multiply(pair[i], shared ? network_.devices_inside(i) : 1);
    }
}

void LevelTraffic::raise(Index held, Index wanted, const Machine& machine, std::span<Index> elements,
                         std::span<Index> pair) {
    look_for_overlaps();
    Index piece = wanted;  // of one source tile
    for (const Place& place : places_)
        if (place.wanter.atom.size == 1 && place.aligned) piece = ceil_divide(piece, place.holder.atom.size);
    for (std::size_t i = 0; i < machine.levels.size(); ++i) {
        const bool shared = i > 0 && machine.levels[i].shared;
        elements[i] = std::max(received(i, shared, wanted), sent(i, shared, held));
        pair[i] = std::min(elements[i], piece);
    }
}

}  // namespace reshard
