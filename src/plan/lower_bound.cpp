// A lower bound for every protocol, with sums.
#include <algorithm>

#include "reshard/check.hpp"
#include "reshard/planner/refinement.hpp"
#include "reshard/planner/step.hpp"

namespace reshard {

namespace {

/// Up to this many dimensions, all ways to split them in two are tried.
constexpr std::size_t parted_dims_max = 8;
/// More is not told apart: a larger share is a bound as well, and nothing overflows.
constexpr Index one_in_max = Index{1} << 20;

// Devices that are in one mesh or in both.
Index devices_of(const Mesh& a, const Mesh& b) {
    if (same_devices(a, b)) return device_count(a);
    Index devices = device_count(a);
    for (Index position = 0; position < device_count(b); ++position)
        devices += position_of(a, device_at(b, position)) ? 0 : 1;
    return devices;
}

// Devices that hold the same summand of an element.
Index copies_of(const Layout& layout) {
    Index tiles = summand_count(layout);
    for (const Dim& dim : layout.dims) tiles *= shard_count(dim);
    return device_count(layout) / tiles;
}

AtomList sharding_atoms(const Layout& layout) {
    AtomList atoms;
    for (const Dim& dim : layout.dims) atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
    return atoms;
}

// A device holds an element both before and after only if each digit that moves between dimensions agrees in both
// indices. Each digit that moves from some dimensions to the others agrees for one element in its size.
Index one_in(const Layout& before, const Layout& after) {
    const std::size_t parted = std::min(before.dims.size(), parted_dims_max);
    // digits that move from each of these dimensions to each of them, and last to all others
    std::vector<std::array<Index, parted_dims_max + 1>> moved(parted);
    for (std::size_t i = 0; i < parted; ++i) {
        const Dim& dim = before.dims[i];
        moved[i].fill(1);
        if (!dim.pieces.empty() || dim.extent % shard_count(dim) != 0) continue;
        const AtomList atoms = as_set(dim.atoms);
        for (std::size_t j = 0; j < after.dims.size() && !atoms.empty(); ++j)
            if (j != i && !after.dims[j].atoms.empty())
                moved[i][std::min(j, parted)] *= combinations(common_digits(atoms, as_set(after.dims[j].atoms)));
    }
    Index most = 1;
    for (std::size_t part = 1; part >> parted == 0; ++part) {
        Index leaving = 1;
        for (std::size_t i = 0; i < parted; ++i)
            for (std::size_t j = 0; j <= parted && (part >> i & 1) != 0; ++j)
                if (j == parted || (part >> j & 1) == 0) leaving *= moved[i][j];
        most = std::max(most, leaving);
    }
    return std::min(most, one_in_max);
}

}  // namespace

SummandChange summand_change(const Layout& before, const Layout& after) {
    SummandChange change{summand_count(before), summand_count(after), copies_of(after), 0, 0, 1};
    change.kept = std::min(copies_of(before), change.copies);
    change.keepers = change.before;
    if (!same_order(before.mesh, after.mesh) || !commensurable(before, after)) return change;
    change.kept = std::min(change.kept, combinations(idle_atoms(before, after)));
    // A digit of a sum that is one of a dimension at the other end has one value for each element.
    change.keepers =
        std::min(change.before / combinations(common_digits(before.unreduced, as_set(sharding_atoms(after)))),
                 change.after / combinations(common_digits(after.unreduced, as_set(sharding_atoms(before)))));
    change.one_in = one_in(before, after);
    return change;
}

Index min_received(const SummandChange& change, Index keepers) {
    const auto [before, after, copies, most_kept, most_keepers, share] = change;
    keepers = std::min(keepers, before);
    const Index fetched = copies - most_kept;  // of a summand that is held in place
    if (before == 1) return keepers > 0 ? fetched : copies;
    if (copies == 1) return std::max(ceil_divide(before - (most_kept > 0 ? keepers : 0), 2), before - after);
    // All others are added to one; those beside it stay at no cost.
    const Index beside = fetched == 0 ? std::min(keepers, after - 1) : 0;
    const Index summed = std::max<Index>(before - beside - 1, 1) + copies - 1;
    return after < before ? summed : std::min(summed, keepers * fetched + (before - keepers) * copies);
}

Index least_received(const SummandChange& change, Index elements, Index devices) {
    const Index moved = min_received(change, 0);
    const Index some_kept = min_received(change, change.keepers);
    const Index receipts = saturating_add(saturating_multiply(moved, change.one_in - 1), some_kept);
    return scale_up(elements, receipts, saturating_multiply(devices, change.one_in));
}

Index lower_bound(const Layout& source, const Layout& target) {
    if (summand_count(source) == 1 && summand_count(target) == 1) return missing_elements(source, target);
    const SummandChange change = summand_change(source, target);
    Index elements = 1;
    for (const Dim& dim : target.dims) elements *= dim.extent;
    const Index received = least_received(change, elements, devices_of(source.mesh, target.mesh));
    // If whole sums are wanted, each device receives its tile.
    return std::max(change.after == 1 ? tile_elements(target) : 0, received);
}

}  // namespace reshard
