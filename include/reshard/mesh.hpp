// A mesh: named axes with sizes over a list of devices, row-major, the first axis most major.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// A named axis with `size` devices along it.
struct Axis {
    std::string name;  ///< not empty; no other axis of the mesh has it
    Index size = 1;    ///< devices along it, at least 1
    friend bool operator==(const Axis&, const Axis&) = default;
};

/// The device at each position of a mesh, row-major: any devices in any order. Cheap to copy.
class DeviceList {
public:
    DeviceList() = default;                  ///< position i is device i
    DeviceList(std::vector<Index> devices);  ///< one device for each position
    /// One device for each position.
    DeviceList(std::initializer_list<Index> devices) : DeviceList(std::vector<Index>(devices)) {}

    /// True when position i is device i, whether the devices are listed or not.
    [[nodiscard]] bool in_order() const;
    /// The devices as they were given; empty by default.
    [[nodiscard]] std::span<const Index> devices() const;
    /// The same devices, ascending.
    [[nodiscard]] std::span<const Index> ascending() const;
    [[nodiscard]] Index device(Index position) const;  ///< the device at this position
    /// The position of a device; nullopt if it is not in the list. By default device i stands at position i.
    [[nodiscard]] std::optional<Index> position(Index device) const;
    /// Fails unless the list has this many positions, each with a different device of at least 0. Errors: mesh,
    /// overflow.
    [[nodiscard]] Result<void> fits(Index positions) const;
    /// True when both have the same device at each position.
    friend bool operator==(const DeviceList& a, const DeviceList& b);

private:
    struct Table;
    std::shared_ptr<const Table> table_;
};

/// Axes, major to minor, over a list of devices. An empty mesh is one device. Device i is rank i of the communicator.
struct Mesh {
    std::vector<Axis> axes;  ///< major to minor
    DeviceList devices;      ///< row-major; by default position i is device i

    Mesh() = default;
    /// Axes over the devices 0, 1, ...
    Mesh(std::initializer_list<Axis> list) : axes(list) {}
    /// Axes over the devices of a list.
    explicit Mesh(std::vector<Axis> list, DeviceList order = {}) : axes(std::move(list)), devices(std::move(order)) {}
    friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// Fails with Code::mesh on a bad or repeated name, on a size below 1, and unless each position has a different device
/// of at least 0. Fails with Code::overflow when the number of devices or a device's number does not fit 64 bits.
[[nodiscard]] Result<void> validate(const Mesh& mesh);

/// The number of positions: the product of the axis sizes. pre: validate(mesh).
[[nodiscard]] Index device_count(const Mesh& mesh);

/// One more than the largest device of the mesh. pre: validate(mesh).
[[nodiscard]] Index world_size(const Mesh& mesh);

[[nodiscard]] Index device_at(const Mesh& mesh, Index position);                 ///< pre: position < device_count(mesh)
[[nodiscard]] std::optional<Index> position_of(const Mesh& mesh, Index device);  ///< nullopt: not in the mesh

/// True when both meshes have the same device at each position. Then the atoms of both are digits of one number.
[[nodiscard]] bool same_order(const Mesh& a, const Mesh& b);
/// True when both meshes have the same devices, in any order.
[[nodiscard]] bool same_devices(const Mesh& a, const Mesh& b);

/// A factor of an axis: `size` values below a more major factor of `before` values. Shardy writes `y:(2)3` for a factor
/// of 3 below one of 2. `size == 0` stands for the whole axis.
struct SubAxis {
    std::string axis;  ///< the axis's name
    Index before = 1;  ///< product of the more major factors
    Index size = 0;    ///< values of this factor
    friend bool operator==(const SubAxis&, const SubAxis&) = default;
};

}  // namespace reshard
