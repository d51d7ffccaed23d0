// Both ends of a move in the order of the devices' numbers.
#pragma once

#include <utility>

#include "reshard/layout.hpp"

namespace reshard {

/// Each end as the same function of the device on a mesh whose position i is device i, where the mesh's list of devices
/// only permutes the digits of their numbers (as transposing or reversing axes does); else the end itself. Whole axes
/// keep their names; where axes are torn apart the mesh has one axis, `device`. On one list of devices both ends are
/// straightened or neither is.
[[nodiscard]] std::pair<Layout, Layout> straightened(const Layout& source, const Layout& target);

}  // namespace reshard
