// Both ends of a move in the order of the devices' numbers.
#pragma once

#include <utility>

#include "reshard/layout.hpp"

namespace reshard {

/// As `straightened` of each; but what is in one order of devices stays in one: on one list of devices both ends are
/// straightened or neither is.
[[nodiscard]] std::pair<Layout, Layout> straightened(const Layout& source, const Layout& target);

}  // namespace reshard
