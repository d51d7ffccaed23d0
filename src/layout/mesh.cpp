#include "reshard/planner/atoms.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/layout/axes.hpp"

namespace reshard {

namespace {

bool is_name(std::string_view text) {
    const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
    const auto inner = [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0; };
    return !text.empty() && letter(static_cast<unsigned char>(text.front())) && std::ranges::all_of(text, inner);
}

}  // namespace

namespace {

// Checks everything except that the name is new. Multiplies `devices` by the size.
Result<void> allowed(const Axis& axis, Index& devices) {
    if (!is_name(axis.name)) return fail(Code::mesh, fmt::format("'{}' is not an axis name", axis.name));
    if (axis.size < 1)
        return fail(Code::mesh, fmt::format("axis {} has size {}, must be at least 1", axis.name, axis.size));
    const auto product = checked_multiply(devices, axis.size);
    if (!product) return fail(Code::overflow, "the mesh has more devices than 64 bits can count");
    devices = *product;
    return {};
}

tl::unexpected<Error> twice(std::string_view name) {
    return fail(Code::mesh, fmt::format("the mesh has two axes named {}", name));
}

// Plans are judged many times on meshes of a few axes, so those allocate nothing.
Result<void> different_names(std::span<const Axis> axes) {
    constexpr std::size_t few = 16;
    if (axes.size() <= few) {
        for (std::size_t i = 0; i < axes.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (axes[j].name == axes[i].name) return twice(axes[i].name);
        return {};
    }
    std::vector<std::string_view> names;
    for (const Axis& axis : axes) names.emplace_back(axis.name);
    std::ranges::sort(names);
    const auto same = std::ranges::adjacent_find(names);
    return same == names.end() ? Result<void>{} : twice(*same);
}

}  // namespace

Result<void> AxisRules::allow(const Axis& axis) {
    if (!names_.insert(axis.name).second) return twice(axis.name);
    return allowed(axis, devices_);
}

Result<void> validate(const Mesh& mesh) {
    Index devices = 1;
    for (const Axis& axis : mesh.axes) RESHARD_CHECK(allowed(axis, devices));
    RESHARD_CHECK(different_names(mesh.axes));
    return mesh.devices.fits(devices);
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
    // Walk the axes from minor to major, and cut off the part of the atom that each axis spans.
    std::vector<SubAxis> names;
    Index stride = 1;  // of the current axis
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

[[maybe_unused]] static bool is_set(const AtomList& atoms) { return as_set(atoms) == atoms; }

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
    assert(is_canonical(list) && is_canonical(prefix));
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
    assert(is_canonical(a) && is_canonical(b));
    AtomList prefix;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        // Both have the same major digits, and the shorter atom is part of the longer one.
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
    assert(is_set(a) && is_set(b));
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
    assert(disjoint(atoms));
    AtomList sorted(atoms.begin(), atoms.end());
    std::erase_if(sorted, [](Atom atom) { return atom.size == 1; });
    std::ranges::sort(sorted, [](Atom a, Atom b) { return a.stride > b.stride; });
    AtomList rest;
    Index above = devices;  // the digits from here up are done
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
    assert(is_set(set) && is_set(part));
    AtomList taken = complement(set, devices);
    taken.insert(taken.end(), part.begin(), part.end());
    if (!disjoint(taken)) return std::nullopt;
    return complement(taken, devices);
}

std::vector<Index> prime_factors(Index n) {
    assert(n >= 1);
    std::vector<Index> factors;
    for (Index p = 2; p <= n / p && p < (Index{1} << 16); ++p)
        for (; n % p == 0; n /= p) factors.push_back(p);
    if (n > 1) factors.push_back(n);
    return factors;
}

}  // namespace reshard
