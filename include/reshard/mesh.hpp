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

/// A named axis; `size` devices along it, at least 1.
struct Axis {
    std::string name;  ///< not empty, once in a mesh
    Index size = 1;    ///< devices along it
    friend bool operator==(const Axis&, const Axis&) = default;
};

/// Which device stands at each position of a mesh, row-major: any order of any devices. Cheap to copy.
class DeviceList {
public:
    DeviceList() = default;                  ///< position i is device i
    DeviceList(std::vector<Index> devices);  ///< one device for each position
    /// The same.
    DeviceList(std::initializer_list<Index> devices) : DeviceList(std::vector<Index>(devices)) {}

    /// True when position i is device i, however it was written.
    [[nodiscard]] bool in_order() const;
    /// The devices as they were given; empty by default.
    [[nodiscard]] std::span<const Index> devices() const;
    /// The same devices, ascending.
    [[nodiscard]] std::span<const Index> ascending() const;
    [[nodiscard]] Index device(Index position) const;  ///< the device at this position
    /// nullopt when the device is not in the list; by default every device stands at its own number.
    [[nodiscard]] std::optional<Index> position(Index device) const;
    /// Fails unless each of `positions` has a different device that is at least 0: mesh, overflow.
    [[nodiscard]] Result<void> fits(Index positions) const;
    /// The same device at each position.
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

/// Fails with Code::mesh on a bad or repeated name, a size < 1, or a list of devices that does not give each position a
/// different device that is at least 0; with Code::overflow when the devices leave 64 bits.
[[nodiscard]] Result<void> validate(const Mesh& mesh);

/// Product of the axis sizes: positions of the mesh. pre: validate(mesh).
[[nodiscard]] Index device_count(const Mesh& mesh);

/// One more than the largest device of the mesh. pre: validate(mesh).
[[nodiscard]] Index world_size(const Mesh& mesh);

[[nodiscard]] Index device_at(const Mesh& mesh, Index position);                 ///< pre: position < device_count(mesh)
[[nodiscard]] std::optional<Index> position_of(const Mesh& mesh, Index device);  ///< nullopt: not in the mesh

/// The same device at each position: atoms of both meshes are digits of one number.
[[nodiscard]] bool same_order(const Mesh& a, const Mesh& b);
/// The same devices, in any order.
[[nodiscard]] bool same_devices(const Mesh& a, const Mesh& b);

/// The factor of size `size` of an axis, with a factor of size `before` more major than it: `y:(2)3` in Shardy's
/// spelling. `size == 0` stands for the whole axis.
struct SubAxis {
    std::string axis;  ///< name
    Index before = 1;  ///< product of the factors more major than it
    Index size = 0;    ///< its own
    friend bool operator==(const SubAxis&, const SubAxis&) = default;
};

}  // namespace reshard
