// Both ends of a move in the order of device numbers.
#pragma once

#include <utility>

#include "reshard/layout.hpp"

namespace reshard {

/// Both ends as the same functions of the device, on meshes whose position i is device i. That is possible where a
/// mesh's list of devices only permutes the digits of their numbers, as transposing or reversing axes does; an end for
/// which it is not is returned as it is. Whole axes keep their names; where axes are torn apart the mesh has one axis,
/// `device`. Ends on one list of devices are either both normalized or both left.
[[nodiscard]] std::pair<Layout, Layout> normalized_devices(const Layout& source, const Layout& target);

}  // namespace reshard
