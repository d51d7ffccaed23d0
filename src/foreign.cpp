// What of its next tile a device does not hold: in closed form where digits have a common refinement and sizes divide,
// else by looking at every device.
#include <algorithm>

#include <fmt/format.h>

#include "change.hpp"
#include "reshard/step.hpp"

namespace reshard {

namespace {

/// Devices are enumerated where no closed form holds; beyond this many that takes too long to be an answer.
constexpr Index enumerated_devices_max = Index{1} << 22;

bool commensurable(const Layout& a, const Layout& b) {
    // The borders of all digits must form one chain of divisors. Of each list by itself: neighbours from different
    // lists would merge to one atom, and the border between them would be lost.
    std::vector<Index> borders;
    const auto add = [&](const AtomList& atoms) {
        for (const Atom& atom : atoms) {
            borders.push_back(atom.stride);
            borders.push_back(atom.stride * atom.size);
        }
    };
    for (const Layout* layout : {&a, &b}) {
        for (const Dim& dim : layout->dims) add(dim.atoms);
        add(layout->unreduced);
    }
    std::ranges::sort(borders);
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i] % borders[i - 1] != 0) return false;
    return true;
}

bool closed_form(const Layout& before, const Layout& after, const Change& change) {
    return same_order(before.mesh, after.mesh) && divides(before) && divides(after) &&
           ((change.prefixes && before.unreduced == after.unreduced) || commensurable(before, after));
}

// Indices of one dimension that lie in a tile of each of two cuts, by shard numbers.
class Overlap {
public:
    Overlap(const Dim& before, const Dim& after) : before_(before), after_(after) {
        if (before.pieces.empty() && after.pieces.empty()) return;
        held_ = sides(before);
        wanted_ = sides(after);
    }
    [[nodiscard]] Index wanted(Index shard) const {
        return wanted_.empty() ? interval(after_, shard).size() : wanted_[static_cast<std::size_t>(shard)].size();
    }
    [[nodiscard]] Index common(Index held, Index wanted) const {
        if (!wanted_.empty())
            return intersect(held_[static_cast<std::size_t>(held)], wanted_[static_cast<std::size_t>(wanted)]).size();
        const Interval b = interval(before_, held);
        const Interval a = interval(after_, wanted);
        return std::max<Index>(0, std::min(b.end, a.end) - std::max(b.begin, a.begin));
    }

private:
    const Dim& before_;
    const Dim& after_;
    std::vector<Side> held_;
    std::vector<Side> wanted_;
};

Index count_foreign(const Layout& before, const Layout& after) {
    std::vector<Overlap> overlaps;
    for (std::size_t i = 0; i < before.dims.size(); ++i) overlaps.emplace_back(before.dims[i], after.dims[i]);
    // Devices that differ only where both ends replicate lack the same.
    const bool one_order = same_order(before.mesh, after.mesh);
    const Index devices = device_count(after);
    const AtomList told_apart = one_order ? complement(idle_atoms(before, after), devices) : AtomList{{devices, 1}};
    const Index all = tile_elements(after);  // none lacks more
    const Index count = combinations(told_apart);
    Index most = 0;
    for (Index number = 0; number < count && most < all; ++number) {
        const Index position = with_value(told_apart, 0, number);
        Index wanted = 1;
        for (std::size_t i = 0; i < after.dims.size(); ++i)
            wanted *= overlaps[i].wanted(value_of(after.dims[i].atoms, position));
        if (wanted <= most) continue;
        const auto held_at = position_of(before.mesh, device_at(after.mesh, position));
        const bool holds = held_at && value_of(before.unreduced, *held_at) == value_of(after.unreduced, position);
        Index kept = holds ? 1 : 0;
        for (std::size_t i = 0; holds && i < after.dims.size(); ++i)
            kept *=
                overlaps[i].common(value_of(before.dims[i].atoms, *held_at), value_of(after.dims[i].atoms, position));
        most = std::max(most, wanted - kept);
    }
    return most;
}

}  // namespace

AtomList spread_atoms(const Layout& before, const Layout& after) {
    return without(used_atoms(after), used_atoms(before), device_count(before)).value_or(AtomList{});
}

AtomList idle_atoms(const Layout& before, const Layout& after) {
    const Index devices = device_count(before);
    return common_digits(complement(used_atoms(before), devices), complement(used_atoms(after), devices));
}

AtomList touched_atoms(const Layout& before, const Layout& after) {
    AtomList untouched = idle_atoms(before, after);
    const auto add = [&](const AtomList& atoms) { untouched.insert(untouched.end(), atoms.begin(), atoms.end()); };
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        const Dim& b = before.dims[i];
        const Dim& a = after.dims[i];
        const AtomList prefix = common_prefix(b.atoms, a.atoms);
        // Where sizes do not divide, the same leading axes may still cut at other places.
        const auto factor = [&](const Dim& dim) { return shard_count(dim) / combinations(prefix); };
        const auto block = [&](const Dim& dim) {
            return std::min(dim.extent, saturating_multiply(tile_extent(dim), factor(dim)));
        };
        const bool even = b.pieces.empty() && a.pieces.empty();
        if (even ? block(b) == block(a) : coarsened(b, prefix, factor(b)) == coarsened(a, prefix, factor(a)))
            add(prefix);
    }
    if (same_summands(before, after)) add(before.unreduced);
    return complement(untouched, device_count(before));
}

Index foreign_elements(const Layout& before, const Layout& after) {
    if (!same_order(before.mesh, after.mesh)) return count_foreign(before, after);
    const Change change = change_of(before, after);
    if (!closed_form(before, after, change)) return count_foreign(before, after);
    const bool comparable = change.prefixes && before.unreduced == after.unreduced;
    // Incomparable lists: some device holds nothing that it wants (theorem lower_bound_incomparable).
    if (!comparable) return tile_elements(after);
    Index kept = 1;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        kept *= std::min(tile_extent(before.dims[i]), tile_extent(after.dims[i]));
    return tile_elements(after) - kept;
}

Result<void> can_count(const Layout& before, const Layout& after) {
    const Index devices = std::max(device_count(before), device_count(after));
    if (devices <= enumerated_devices_max || closed_form(before, after, change_of(before, after))) return {};
    return fail(
        Code::unsupported,
        fmt::format(
            "sizes do not divide, devices are reordered, or axes are cut at places without a common refinement, "
            "on {} devices: more than the {} that can be enumerated",
            devices, enumerated_devices_max));
}

}  // namespace reshard
