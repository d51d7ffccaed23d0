// Puts both ends of a move into the order of device numbers.
#pragma once

#include <utility>

#include "reshard/layout.hpp"

namespace reshard {

/// Both ends on meshes whose position i is device i; every device holds the same as before. This works if a mesh's list
/// only permutes the digits of the device numbers, as transposing or reversing axes does. Otherwise the end is returned
/// unchanged. Whole axes keep their names; if axes are torn apart, the mesh has one axis, `device`. Ends on one list of
/// devices are either both normalized or both unchanged.
[[nodiscard]] std::pair<Layout, Layout> normalized_devices(const Layout& source, const Layout& target);

}  // namespace reshard
