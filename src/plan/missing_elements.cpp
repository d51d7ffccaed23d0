// The elements of its next tile that a device does not hold. In closed form if digits have a common refinement and
// sizes divide. Otherwise by looking at every device.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/step.hpp"
#include "src/plan/axis_delta.hpp"
#include "src/plan/overlap.hpp"

namespace reshard {

namespace {

/// Devices are enumerated where no closed form holds; beyond this many that takes too long to be an answer.
constexpr Index enumerated_devices_max = Index{1} << 22;

bool closed_form(const Layout& before, const Layout& after, const AxisDelta& change) {
    return same_order(before.mesh, after.mesh) && divides(before) && divides(after) &&
           ((change.prefixes && before.unreduced == after.unreduced) || commensurable(before, after));
}

// The shard numbers of two layouts in each dimension, and their summand numbers.
class Numbers {
public:
    Numbers(const Layout& before, const Layout& after) : before_(before), after_(after) {}
    [[nodiscard]] std::size_t width() const { return 2 * (before_.dims.size() + 1); }
    [[nodiscard]] std::size_t wanted() const { return before_.dims.size() + 1; }  // where the numbers of `after` begin

    void append(Index held_at, Index wanted_at, std::vector<Index>& numbers) const {
        for (const auto& [layout, position] : {std::pair(&before_, held_at), std::pair(&after_, wanted_at)}) {
            for (const Dim& dim : layout->dims) numbers.push_back(value_of(dim.atoms, position));
            numbers.push_back(value_of(layout->unreduced, position));
        }
    }

    // Whether number(p) = number(p % border) + number(p - p % border).
    [[nodiscard]] bool add_up_at(Index border, const AtomList& told_apart) const {
        const auto splits = [&](const AtomList& atoms) {
            return std::ranges::all_of(atoms, [&](const Atom& atom) {
                const Index top = atom.stride * atom.size;
                return atom.stride % border == 0 || border % top == 0 ||
                       (border % atom.stride == 0 && top % border == 0);
            });
        };
        for (const Layout* layout : {&before_, &after_})
            if (!splits(layout->unreduced) ||
                !std::ranges::all_of(layout->dims, [&](const Dim& dim) { return splits(dim.atoms); }))
                return false;
        return splits(told_apart);
    }

private:
    const Layout& before_;
    const Layout& after_;
};

// The border of digits below which numbers are computed only once. 1 if no border works, or if there are few devices.
Index best_border(const Numbers& numbers, const Mesh& mesh, const AtomList& told_apart, Index devices) {
    if (combinations(told_apart) < 4096) return 1;
    Index best = 1;
    Index border = 1;
    const auto longer = [&](Index at) { return std::max(at, devices / at); };
    for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); ++axis)
        for (const Index prime : prime_factors(axis->size)) {
            border *= prime;
            if (longer(border) < longer(best) && numbers.add_up_at(border, told_apart)) best = border;
        }
    return best;
}

// The digits below the border, or above it.
AtomList part(const AtomList& atoms, Index border, bool below) {
    AtomList kept;
    for (const Atom& atom : atoms) {
        const Index top = atom.stride * atom.size;
        const Index low = below ? atom.stride : std::max(atom.stride, border);
        const Index high = below ? std::min(top, border) : top;
        if (low < high) kept.push_back({high / low, low});
    }
    return kept;
}

Index count_foreign(const Layout& before, const Layout& after) {
    const std::size_t dims = before.dims.size();
    std::vector<Overlap> overlaps;
    overlaps.reserve(dims);
    for (std::size_t i = 0; i < dims; ++i) overlaps.emplace_back(before.dims[i], after.dims[i]);
    // Devices that differ only where both ends replicate lack the same.
    const bool one_order = same_order(before.mesh, after.mesh);
    const Index devices = device_count(after);
    const AtomList told_apart = one_order ? complement(idle_atoms(before, after), devices) : AtomList{{devices, 1}};
    const Numbers numbers(before, after);
    const Index border = one_order ? best_border(numbers, after.mesh, told_apart, devices) : 1;
    const AtomList minor = part(told_apart, border, true);
    const AtomList major = part(told_apart, border, false);
    std::vector<Index> table;
    for (Index number = 0; number < combinations(minor); ++number) {
        const Index position = with_value(minor, 0, number);
        numbers.append(position, position, table);
    }
    const Index all = tile_elements(after);  // none lacks more
    const Index count = combinations(major);
    const std::size_t wants = numbers.wanted();
    Index most = 0;
    std::vector<Index> base;
    for (Index number = 0; number < count && most < all; ++number) {
        const Index position = with_value(major, 0, number);
        const std::optional<Index> held_at =
            one_order ? std::optional(position) : position_of(before.mesh, device_at(after.mesh, position));
        base.clear();
        numbers.append(held_at.value_or(0), position, base);
        for (std::size_t row = 0; row < table.size() && most < all; row += numbers.width()) {
            const auto shard = [&](std::size_t i) { return base[i] + table[row + i]; };
            Index wanted = 1;
            for (std::size_t i = 0; i < dims; ++i) wanted *= overlaps[i].wanted(shard(wants + i));
            if (wanted <= most) continue;
            Index kept = held_at && shard(dims) == shard(wants + dims) ? 1 : 0;
            for (std::size_t i = 0; kept > 0 && i < dims; ++i) kept *= overlaps[i].common(shard(i), shard(wants + i));
            most = std::max(most, wanted - kept);
        }
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
        // If sizes do not divide, the same leading axes may still cut at other places.
        const auto factor = [&](const Dim& dim) { return shard_count(dim) / combinations(prefix); };
        const auto block = [&](const Dim& dim) {
            return std::min(dim.extent, saturating_multiply(block_extent(dim), factor(dim)));
        };
        const bool even = by_ceil_div(b) && by_ceil_div(a);
        if (even ? block(b) == block(a) : coarsened(b, prefix, factor(b)) == coarsened(a, prefix, factor(a)))
            add(prefix);
    }
    if (same_summands(before, after)) add(before.unreduced);
    return complement(untouched, device_count(before));
}

Index missing_elements(const Layout& before, const Layout& after) {
    if (!same_order(before.mesh, after.mesh)) return count_foreign(before, after);
    const AxisDelta change = change_of(before, after);
    if (!closed_form(before, after, change)) return count_foreign(before, after);
    const bool comparable = change.prefixes && before.unreduced == after.unreduced;
    // Incomparable lists: some device holds nothing that it wants (theorem lower_bound_incomparable).
    if (!comparable) return tile_elements(after);
    Index kept = 1;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        kept *= std::min(block_extent(before.dims[i]), block_extent(after.dims[i]));
    return tile_elements(after) - kept;
}

Result<void> check_enumerable(const Layout& before, const Layout& after) {
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
