// Checks of a rebuild.
#pragma once

#include "reshard/boxes/rebuild.hpp"

namespace reshard {

/// The devices in ascending order, each once.
[[nodiscard]] std::vector<Index> ascending(std::span<const Index> devices);

/// Fails as rebuild_traffic does. `lost` ascends.
[[nodiscard]] Result<void> check_rebuild(const RebuildMove& move, const std::vector<Index>& lost);

}  // namespace reshard
