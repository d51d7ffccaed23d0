// The device at each position of a mesh.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/mesh.hpp"

namespace reshard {

struct DeviceList::Table {
    std::vector<Index> devices;                      // at each position
    std::vector<Index> ascending;                    // the same, sorted
    std::vector<std::pair<Index, Index>> positions;  // device, position; sorted
    bool in_order = true;
};

DeviceList::DeviceList(std::vector<Index> devices) {
    Table table{std::move(devices), {}, {}, true};
    for (std::size_t i = 0; i < table.devices.size(); ++i) {
        const auto position = static_cast<Index>(i);
        table.positions.emplace_back(table.devices[i], position);
        table.in_order = table.in_order && table.devices[i] == position;
    }
    std::ranges::sort(table.positions);
    for (const auto& [device, position] : table.positions) table.ascending.push_back(device);
    table_ = std::make_shared<const Table>(std::move(table));
}

bool DeviceList::in_order() const { return !table_ || table_->in_order; }

std::span<const Index> DeviceList::devices() const {
    return table_ ? std::span<const Index>(table_->devices) : std::span<const Index>();
}

std::span<const Index> DeviceList::ascending() const {
    return table_ ? std::span<const Index>(table_->ascending) : std::span<const Index>();
}

Index DeviceList::device(Index position) const {
    return table_ ? table_->devices[static_cast<std::size_t>(position)] : position;
}

std::optional<Index> DeviceList::position(Index device) const {
    if (!table_) return device;
    const auto found = std::ranges::lower_bound(table_->positions, std::pair{device, Index{0}});
    if (found == table_->positions.end() || found->first != device) return std::nullopt;
    return found->second;
}

bool operator==(const DeviceList& a, const DeviceList& b) {
    if (a.table_ == b.table_ || (a.in_order() && b.in_order())) return true;
    return std::ranges::equal(a.devices(), b.devices());
}

Result<void> DeviceList::fits(Index positions) const {
    const std::span<const Index> listed = ascending();
    if (!table_) return {};
    if (static_cast<Index>(listed.size()) != positions)
        return fail(Code::mesh,
                    fmt::format("the mesh has {} positions and lists {} devices", positions, listed.size()));
    if (listed.front() < 0) return fail(Code::mesh, fmt::format("there is no device {}", listed.front()));
    if (listed.back() == index_max) return fail(Code::overflow, "a device number leaves 64 bits");
    const auto twice = std::ranges::adjacent_find(listed);
    if (twice != listed.end()) return fail(Code::mesh, fmt::format("the mesh lists device {} twice", *twice));
    return {};
}

Index world_size(const Mesh& mesh) {
    const std::span<const Index> listed = mesh.devices.ascending();
    return listed.empty() ? device_count(mesh) : listed.back() + 1;
}

Index device_at(const Mesh& mesh, Index position) { return mesh.devices.device(position); }

std::optional<Index> position_of(const Mesh& mesh, Index device) {
    if (!mesh.devices.in_order()) return mesh.devices.position(device);
    if (device < 0 || device >= device_count(mesh)) return std::nullopt;
    return device;
}

bool same_order(const Mesh& a, const Mesh& b) { return a.devices == b.devices && device_count(a) == device_count(b); }

bool same_devices(const Mesh& a, const Mesh& b) {
    if (same_order(a, b)) return true;
    const auto in_order = [](const Mesh& mesh) { return world_size(mesh) == device_count(mesh); };
    if (device_count(a) != device_count(b)) return false;
    // There are as many different devices as numbers up to the largest, so the list holds all of them.
    if (in_order(a) || in_order(b)) return in_order(a) && in_order(b);
    return std::ranges::equal(a.devices.ascending(), b.devices.ascending());
}

}  // namespace reshard
