#include "reshard/mesh.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "axis_check.hpp"

namespace reshard {

namespace {

bool is_name(std::string_view text) {
    const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
    const auto inner = [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0; };
    return !text.empty() && letter(static_cast<unsigned char>(text.front())) && std::ranges::all_of(text, inner);
}

}  // namespace

// Few names are compared faster than hashed.
bool AxisCheck::taken(std::span<const Axis> axes) {
    constexpr std::size_t few = 16;
    const Axis& last = axes.back();
    const auto before = axes.first(axes.size() - 1);
    if (axes.size() <= few) return std::ranges::find(before, last.name, &Axis::name) != before.end();
    if (names_.empty())
        for (const Axis& axis : before) names_.insert(axis.name);
    return !names_.insert(last.name).second;
}

Result<void> AxisCheck::add(std::span<const Axis> axes) {
    const Axis& axis = axes.back();
    if (!is_name(axis.name)) return fail(Code::mesh, fmt::format("'{}' is not an axis name", axis.name));
    if (axis.size < 1)
        return fail(Code::mesh, fmt::format("axis {} has size {}, must be at least 1", axis.name, axis.size));
    if (taken(axes)) return fail(Code::mesh, fmt::format("the mesh has two axes named {}", axis.name));
    const auto product = checked_multiply(devices_, axis.size);
    if (!product) return fail(Code::overflow, "the mesh has more devices than 64 bits can count");
    devices_ = *product;
    return {};
}

Result<void> validate(const Mesh& mesh) {
    AxisCheck check;
    const std::span<const Axis> axes(mesh.axes);
    for (std::size_t count = 1; count <= axes.size(); ++count)
        if (auto valid = check.add(axes.first(count)); !valid) return valid;
    return mesh.devices.fits(check.devices());
}

Index device_count(const Mesh& mesh) {
    Index devices = 1;
    for (const Axis& axis : mesh.axes) devices *= axis.size;
    return devices;
}

Result<Atom> atom_of(const Mesh& mesh, const SubAxis& part) {
    Index stride = 1;
    for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); stride *= axis->size, ++axis) {
        if (axis->name != part.axis) continue;
        const Index size = part.size == 0 ? axis->size : part.size;
        if (part.before < 1 || size < 1)
            return fail(Code::layout,
                        fmt::format("{}:({}){} needs factors of at least 1", part.axis, part.before, size));
        const auto factor = checked_multiply(part.before, size);
        if (!factor || axis->size % *factor != 0)
            return fail(Code::layout, fmt::format("{}:({}){} does not divide axis {} of size {}", part.axis,
                                                  part.before, size, part.axis, axis->size));
        return Atom{size, stride * (axis->size / *factor)};
    }
    return fail(Code::layout, fmt::format("the mesh has no axis {}", part.axis));
}

std::optional<std::vector<SubAxis>> names_of(const Mesh& mesh, Atom atom) {
    // Walk the axes from minor to major and cut off of the atom what each axis spans.
    std::vector<SubAxis> names;
    Index stride = 1;  // of the axis at hand
    for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend() && atom.size > 1; ++axis) {
        const Index above = stride * axis->size;
        if (atom.stride < above && axis->size > 1) {
            if (atom.stride % stride != 0 || above % atom.stride != 0) return std::nullopt;
            const Index rest = above / atom.stride;  // values of this axis from the atom's first digit up
            const Index size = atom.size >= rest ? rest : atom.size;
            if (rest % size != 0 || atom.size % size != 0) return std::nullopt;
            const Index before = rest / size;
            names.push_back({axis->name, before, before == 1 && size == axis->size ? 0 : size});
            atom = {atom.size / size, atom.stride * size};
        }
        stride = above;
    }
    if (atom.size > 1) return std::nullopt;
    std::ranges::reverse(names);
    return names;
}

namespace {

// True when `minor` is the digit right below `major`, so that the two are one atom.
bool continues(Atom major, Atom minor) {
    return major.stride % minor.size == 0 && major.stride / minor.size == minor.stride;
}

}  // namespace

bool is_canonical(std::span<const Atom> atoms) {
    for (std::size_t i = 0; i < atoms.size(); ++i)
        if (atoms[i].size == 1 || (i > 0 && atoms[i].size > 0 && continues(atoms[i - 1], atoms[i]))) return false;
    return true;
}

AtomList canonical(AtomList atoms) {
    AtomList list;
    list.reserve(atoms.size());
    for (const Atom& atom : atoms) {
        if (atom.size == 1) continue;
        if (!list.empty() && continues(list.back(), atom))
            list.back() = {list.back().size * atom.size, atom.stride};
        else
            list.push_back(atom);
    }
    return list;
}

AtomList as_set(AtomList atoms) {
    std::ranges::sort(atoms, [](Atom a, Atom b) { return a.stride > b.stride; });
    return canonical(std::move(atoms));
}

Index combinations(std::span<const Atom> atoms) {
    Index product = 1;
    for (const Atom& atom : atoms) product *= atom.size;
    return product;
}

Index value_of(std::span<const Atom> atoms, Index device) {
    Index value = 0;
    for (const Atom& atom : atoms) value = value * atom.size + coordinate(atom, device);
    return value;
}

bool disjoint(std::span<const Atom> atoms) {
    AtomList sorted;
    for (const Atom& atom : atoms)
        if (atom.size > 1) sorted.push_back(atom);
    std::ranges::sort(sorted, [](Atom a, Atom b) { return a.stride < b.stride; });
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i].stride % (sorted[i - 1].stride * sorted[i - 1].size) != 0) return false;
    return true;
}

std::optional<AtomList> after_prefix(const AtomList& list, const AtomList& prefix) {
    AtomList rest = list;
    std::size_t head = 0;
    for (const Atom& atom : prefix) {
        if (head == rest.size() || rest[head].size % atom.size != 0) return std::nullopt;
        const Index left = rest[head].size / atom.size;
        if (rest[head].stride * left != atom.stride) return std::nullopt;
        if (left == 1)
            ++head;
        else
            rest[head].size = left;
    }
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(head));
    return rest;
}

AtomList common_prefix(AtomList a, AtomList b) {
    AtomList prefix;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        // The same major digits, of which the shorter atom is part.
        if (a[i].size * a[i].stride != b[j].size * b[j].stride) break;
        const Index size = std::min(a[i].size, b[j].size);
        if (a[i].size % size != 0 || b[j].size % size != 0) break;
        prefix.push_back({size, a[i].size / size * a[i].stride});
        for (auto [list, at] : {std::pair{&a, &i}, std::pair{&b, &j}}) {
            Atom& head = (*list)[*at];
            head.size /= size;
            if (head.size == 1) ++*at;
        }
    }
    return canonical(std::move(prefix));
}

AtomList common_digits(const AtomList& a, const AtomList& b) {
    AtomList common;
    for (const Atom& one : a)
        for (const Atom& other : b) {
            const Index low = std::max(one.stride, other.stride);
            const Index high = std::min(one.stride * one.size, other.stride * other.size);
            const auto aligned = [&](Atom atom) {
                return low % atom.stride == 0 && high % low == 0 && atom.stride * atom.size % high == 0;
            };
            if (high > low && aligned(one) && aligned(other)) common.push_back({high / low, low});
        }
    return as_set(std::move(common));
}

AtomList complement(std::span<const Atom> atoms, Index devices) {
    AtomList sorted(atoms.begin(), atoms.end());
    std::erase_if(sorted, [](Atom atom) { return atom.size == 1; });
    std::ranges::sort(sorted, [](Atom a, Atom b) { return a.stride > b.stride; });
    AtomList rest;
    Index above = devices;  // the digits from here up are dealt with
    for (const Atom& atom : sorted) {
        const Index top = atom.stride * atom.size;
        if (above > top) rest.push_back({above / top, top});
        above = atom.stride;
    }
    if (above > 1) rest.push_back({above, 1});
    return canonical(std::move(rest));
}

Index with_value(std::span<const Atom> atoms, Index device, Index value) {
    for (auto atom = atoms.rbegin(); atom != atoms.rend(); ++atom) {
        device += (value % atom->size - coordinate(*atom, device)) * atom->stride;
        value /= atom->size;
    }
    return device;
}

std::vector<Index> group_of(std::span<const Atom> atoms, Index device) {
    std::vector<Index> members(static_cast<std::size_t>(combinations(atoms)));
    for (std::size_t i = 0; i < members.size(); ++i) members[i] = with_value(atoms, device, static_cast<Index>(i));
    return members;
}

std::optional<AtomList> without(const AtomList& set, const AtomList& part, Index devices) {
    AtomList taken = complement(set, devices);
    taken.insert(taken.end(), part.begin(), part.end());
    if (!disjoint(taken)) return std::nullopt;
    return complement(taken, devices);
}

}  // namespace reshard
