// Numbers of all ranks on every rank, by a backend that only moves boxes.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// Collective; waits for all ranks. Returns the numbers that each rank brings, by rank. Errors: backend.
[[nodiscard]] Result<std::vector<std::vector<Index>>> gather(std::span<const Index> own, Backend& backend);

}  // namespace reshard
