// The rules for the axes of a mesh, one axis at a time: a reader stops at the first bad one, in one pass over all.
#pragma once

#include <unordered_set>

#include "reshard/mesh.hpp"

namespace reshard {

class AxisCheck {
public:
    /// The last of `axes`, after those before it: a name, not taken, a size, devices that 64 bits can count.
    [[nodiscard]] Result<void> add(std::span<const Axis> axes);
    [[nodiscard]] Index devices() const { return devices_; }

private:
    [[nodiscard]] bool taken(std::span<const Axis> axes);

    std::unordered_set<std::string> names_;  // once there are many
    Index devices_ = 1;
};

}  // namespace reshard
