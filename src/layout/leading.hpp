// The leading digits of a list of atoms.
#pragma once

#include <optional>

#include "reshard/planner/atoms.hpp"

namespace reshard {

/// Removes the leading digits from `atoms` that take `size` values together, and returns them. Returns nullopt if no
/// leading digits do. pre: canonical.
[[nodiscard]] std::optional<AtomList> take_leading(AtomList& atoms, Index size);

}  // namespace reshard
