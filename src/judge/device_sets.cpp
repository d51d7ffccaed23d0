#include "src/judge/device_sets.hpp"

#include <algorithm>
#include <set>

namespace reshard {

namespace {

// The device at which a set begins or ends.
struct Border {
    Index device = 0;
    bool enters = false;
    std::size_t set = 0;
};

// The borders of the runs of consecutive devices in a mesh.
void append_borders(const Mesh& mesh, std::size_t set, std::vector<Border>& borders) {
    const auto listed = mesh.devices.ascending();
    if (listed.empty()) {
        borders.push_back({0, true, set});
        borders.push_back({device_count(mesh), false, set});
        return;
    }
    for (std::size_t begin = 0, end = 0; begin < listed.size(); begin = end) {
        end = begin + 1;
        while (end < listed.size() && listed[end] == listed[end - 1] + 1) ++end;
        borders.push_back({listed[begin], true, set});
        borders.push_back({listed[end - 1] + 1, false, set});
    }
}

}  // namespace

std::size_t DeviceSets::number_of(const Mesh& mesh) {
    const auto listed = mesh.devices.ascending();
    const Index first = listed.empty() ? 0 : listed.front();
    std::vector<std::size_t>& alike = numbers_[{device_count(mesh), first, reshard::world_size(mesh)}];
    for (const std::size_t set : alike)
        if (same_devices(meshes_[set], mesh)) return set;
    alike.push_back(meshes_.size());
    meshes_.push_back(mesh);
    world_ = std::max(world_, reshard::world_size(mesh));
    return meshes_.size() - 1;
}

std::vector<DeviceClass> DeviceSets::classes() const {
    std::vector<Border> borders;
    for (std::size_t set = 0; set < meshes_.size(); ++set) append_borders(meshes_[set], set, borders);
    std::ranges::sort(borders, {}, &Border::device);
    std::set<std::size_t> now;
    std::map<std::vector<std::size_t>, Index> found;
    for (auto border = borders.begin(); border != borders.end();) {
        const Index device = border->device;
        for (; border != borders.end() && border->device == device; ++border) {
            if (border->enters)
                now.insert(border->set);
            else
                now.erase(border->set);
        }
        if (!now.empty()) found.emplace(std::vector<std::size_t>(now.begin(), now.end()), device);
    }
    std::vector<DeviceClass> classes;
    for (const auto& [sets, device] : found) classes.push_back({device, sets});
    std::ranges::sort(classes, {}, &DeviceClass::device);
    return classes;
}

}  // namespace reshard
