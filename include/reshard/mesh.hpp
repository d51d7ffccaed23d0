// A mesh: named axes with sizes over a list of devices, row-major, the first axis most major.
// Below the names there are only atoms: digits of the position of a device in the mesh.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reshard/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// A named axis; `size` devices along it, at least 1.
struct Axis {
    std::string name;
    Index size = 1;
    friend bool operator==(const Axis&, const Axis&) = default;
};

/// Which device stands at each position of a mesh, row-major: any order of any devices. Cheap to copy.
class DeviceList {
public:
    DeviceList() = default;  ///< position i is device i
    DeviceList(std::vector<Index> devices);
    DeviceList(std::initializer_list<Index> devices) : DeviceList(std::vector<Index>(devices)) {}

    /// True when position i is device i, however it was written.
    [[nodiscard]] bool in_order() const;
    /// The devices as they were given; empty by default.
    [[nodiscard]] std::span<const Index> devices() const;
    /// The same devices, ascending.
    [[nodiscard]] std::span<const Index> ascending() const;
    [[nodiscard]] Index device(Index position) const;
    /// nullopt when the device is not in the list. pre: the list is not the default.
    [[nodiscard]] std::optional<Index> position(Index device) const;
    /// Fails unless the list is one different device, at least 0, for each of `positions`: mesh, overflow.
    [[nodiscard]] Result<void> fits(Index positions) const;
    friend bool operator==(const DeviceList& a, const DeviceList& b);

private:
    struct Table;
    std::shared_ptr<const Table> table_;
};

/// Axes, major to minor, over a list of devices. An empty mesh is one device. Device i is rank i of the communicator.
struct Mesh {
    std::vector<Axis> axes;
    DeviceList devices;

    Mesh() = default;
    Mesh(std::initializer_list<Axis> list) : axes(list) {}
    explicit Mesh(std::vector<Axis> list, DeviceList order = {}) : axes(std::move(list)), devices(std::move(order)) {}
    friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// Fails with Code::mesh on a bad or repeated name, a size < 1, or a list of devices that is not one different device,
/// at least 0, for each position; with Code::overflow when the devices leave 64 bits.
[[nodiscard]] Result<void> validate(const Mesh& mesh);

/// Product of the axis sizes: positions of the mesh. pre: validate(mesh).
[[nodiscard]] Index device_count(const Mesh& mesh);

/// One more than the largest device of the mesh. pre: validate(mesh).
[[nodiscard]] Index world_size(const Mesh& mesh);

[[nodiscard]] Index device_at(const Mesh& mesh, Index position);
[[nodiscard]] std::optional<Index> position_of(const Mesh& mesh, Index device);  ///< nullopt: not in the mesh

/// The same device at each position: atoms of both meshes are digits of one number.
[[nodiscard]] bool same_order(const Mesh& a, const Mesh& b);
/// The same devices, in any order.
[[nodiscard]] bool same_devices(const Mesh& a, const Mesh& b);

/// The factor of size `size` of an axis that has a factor of size `before` more major than it: `y:(2)3` in Shardy's
/// spelling. `size == 0` stands for the whole axis.
struct SubAxis {
    std::string axis;
    Index before = 1;
    Index size = 0;
    friend bool operator==(const SubAxis&, const SubAxis&) = default;
};

/// A digit of the position in the mesh, which is the device number unless the mesh lists its devices:
/// coordinate(position) = position / stride mod size. Axes and sub-axes all become atoms; names are for printing.
struct Atom {
    Index size = 1;
    Index stride = 1;
    friend auto operator<=>(const Atom&, const Atom&) = default;
};

[[nodiscard]] constexpr Index coordinate(Atom atom, Index device) { return device / atom.stride % atom.size; }

/// The atom of a (sub-)axis. Fails with Code::layout on an unknown axis or a factor that does not divide.
[[nodiscard]] Result<Atom> atom_of(const Mesh& mesh, const SubAxis& axis);

/// The names of an atom in this mesh, major to minor (more than one when it spans axes); nullopt when it has none.
[[nodiscard]] std::optional<std::vector<SubAxis>> names_of(const Mesh& mesh, Atom atom);

/// An ordered list of atoms, major to minor, in canonical form: no size 1, neighbours that continue each other merged.
/// Two canonical lists are equal exactly when they are the same digits in the same order.
using AtomList = std::vector<Atom>;

[[nodiscard]] AtomList canonical(AtomList atoms);
[[nodiscard]] bool is_canonical(std::span<const Atom> atoms);

/// The same atoms as a set: sorted by stride, most major first, and canonical.
[[nodiscard]] AtomList as_set(AtomList atoms);

/// Product of the sizes: how many values the digits take together.
[[nodiscard]] Index combinations(std::span<const Atom> atoms);

/// Mixed-radix value of the digits of `device`, the first atom most major.
[[nodiscard]] Index value_of(std::span<const Atom> atoms, Index device);

/// True when no two atoms share a digit and each pair has a common refinement (one lies wholly above the other).
[[nodiscard]] bool disjoint(std::span<const Atom> atoms);

/// What is left of `list` after the prefix `prefix`, or nullopt when it is no prefix. Atoms are split where needed.
/// pre: both canonical.
[[nodiscard]] std::optional<AtomList> after_prefix(const AtomList& list, const AtomList& prefix);

/// The longest list of digits that leads both. pre: both canonical.
[[nodiscard]] AtomList common_prefix(AtomList a, AtomList b);

/// Digits that lie in both sets, as a set; digits whose borders do not align are left out. pre: both sets.
[[nodiscard]] AtomList common_digits(const AtomList& a, const AtomList& b);

/// Digits of the device number that none of `atoms` uses, most major first. pre: disjoint(atoms).
[[nodiscard]] AtomList complement(std::span<const Atom> atoms, Index devices);

/// Sets the digits of `device` so that value_of(atoms, result) == value.
[[nodiscard]] Index with_value(std::span<const Atom> atoms, Index device, Index value);

/// The devices that differ from `device` on these atoms only, ordered by value_of(atoms, .).
[[nodiscard]] std::vector<Index> group_of(std::span<const Atom> atoms, Index device);

/// `set` without the digits of `part`, as a set; nullopt when `part` is not within it. pre: both sets.
[[nodiscard]] std::optional<AtomList> without(const AtomList& set, const AtomList& part, Index devices);

/// Prime factors, ascending; a factor without a divisor up to 2^16 counts as one. pre: n >= 1.
[[nodiscard]] std::vector<Index> prime_factors(Index n);

}  // namespace reshard
