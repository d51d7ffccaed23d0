// The sets of devices that the meshes of a list stand on, and which devices are in the same ones.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "reshard/mesh.hpp"

namespace reshard {

/// Devices that are in the same sets: one of them stands for all.
struct DeviceClass {
    Index device = 0;               ///< the smallest
    std::vector<std::size_t> sets;  ///< that hold it, ascending
};

/// Meshes of the same devices, in any order and under any names, are one set. Sets are numbered from 0 on.
class DeviceSets {
public:
    /// The number of the mesh's set, which is added if it is new. Cost: logarithmic in the sets, linear in the
    /// devices of meshes that list them.
    std::size_t number_of(const Mesh& mesh);

    [[nodiscard]] std::size_t size() const { return meshes_.size(); }
    [[nodiscard]] const Mesh& mesh(std::size_t set) const { return meshes_[set]; }
    /// One more than the largest device.
    [[nodiscard]] Index world_size() const { return world_; }
    /// One class for each combination of sets that some device is in, by their devices. Cost: linear in the listed
    /// devices, times the sets that one device is in.
    [[nodiscard]] std::vector<DeviceClass> classes() const;

private:
    std::vector<Mesh> meshes_;
    std::map<std::tuple<Index, Index, Index>, std::vector<std::size_t>> numbers_;  // by size, first and last device
    Index world_ = 0;
};

}  // namespace reshard
