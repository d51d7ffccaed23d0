// Writes device orders that permute digits as atoms. Only the rest needs a table.
#include "reshard/planner/normalize_devices.hpp"

#include <algorithm>

#include "reshard/planner/refinement.hpp"

namespace reshard {

namespace {

// A digit of the position, and its stride in the device number.
struct Digit {
    Atom atom;
    Index device_stride = 0;
};

using Layouts = std::initializer_list<const Layout*>;

// The coarsest digits that express all axes and atoms of these layouts, most major first. Empty if the borders do not
// align. pre: all layouts have one order of the devices.
std::vector<Digit> digits_of(Layouts layouts) {
    std::vector<Index> borders = {1};
    for (const Layout* layout : layouts) {
        Index stride = 1;
        for (auto axis = layout->mesh.axes.rbegin(); axis != layout->mesh.axes.rend(); ++axis)
            borders.push_back(stride *= axis->size);
        append_borders(*layout, borders);
    }
    std::vector<Digit> digits;
    for (const Atom& atom : refinement(std::move(borders)).value_or(AtomList{}))
        digits.push_back({atom, device_at((*layouts.begin())->mesh, atom.stride)});
    return digits;
}

// True if the device number is the sum of digit x stride everywhere, and these are all the devices.
bool permutes(const Layout& layout, const std::vector<Digit>& digits) {
    const Index devices = device_count(layout);
    if (digits.empty() || world_size(layout.mesh) != devices) return false;
    for (Index position = 0; position < devices; ++position) {
        Index device = 0;
        for (const Digit& digit : digits) device += coordinate(digit.atom, position) * digit.device_stride;
        if (device != device_at(layout.mesh, position)) return false;
    }
    return true;
}

AtomList moved(const AtomList& atoms, const std::vector<Digit>& digits) {
    AtomList list;
    for (const Atom& atom : atoms)
        for (const Digit& digit : digits)
            if (is_within(digit.atom, atom)) list.push_back({digit.atom.size, digit.device_stride});
    return canonical(std::move(list));
}

// The axes by their strides in the device number. One axis if an axis has no single stride there.
Mesh mesh_of(const Layout& layout, const std::vector<Digit>& digits) {
    std::vector<std::pair<Index, Axis>> placed;
    Index stride = device_count(layout);
    for (const Axis& axis : layout.mesh.axes) {
        stride /= axis.size;
        const AtomList here = moved({{axis.size, stride}}, digits);
        if (axis.size > 1 && here.size() > 1) return Mesh{{"device", device_count(layout)}};
        placed.emplace_back(here.empty() ? 0 : here.front().stride, axis);
    }
    std::ranges::stable_sort(placed, [](const auto& a, const auto& b) { return a.first > b.first; });
    Mesh mesh;
    for (auto& [place, axis] : placed) mesh.axes.push_back(std::move(axis));
    return mesh;
}

// The layout in these digits; nullopt if the list of devices does not permute them.
std::optional<Layout> normalized_in(const std::vector<Digit>& digits, const Layout& layout) {
    if (!permutes(layout, digits)) return std::nullopt;
    Layout normal = layout;
    normal.mesh = mesh_of(layout, digits);
    normal.unreduced = as_set(moved(layout.unreduced, digits));
    for (Dim& dim : normal.dims) dim.atoms = moved(dim.atoms, digits);
    return normal;
}

Layout normalized_alone(const Layout& layout) {
    if (layout.mesh.devices.in_order()) return layout;
    return normalized_in(digits_of({&layout}), layout).value_or(layout);
}

}  // namespace

std::pair<Layout, Layout> normalized_devices(const Layout& source, const Layout& target) {
    std::pair<Layout, Layout> normal{normalized_alone(source), normalized_alone(target)};
    const auto in_order = [](const Layout& layout) { return layout.mesh.devices.in_order(); };
    if (!same_order(source.mesh, target.mesh) || in_order(normal.first) == in_order(normal.second)) return normal;
    // One end alone may have too few digits, or other digits than the list permutes.
    const std::vector<Digit> digits = digits_of({&source, &target});
    const auto first = normalized_in(digits, source);
    const auto second = normalized_in(digits, target);
    if (first && second) return {*first, *second};
    return {source, target};
}

}  // namespace reshard
