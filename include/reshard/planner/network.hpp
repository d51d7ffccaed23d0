// Which devices are near each other. A schedule uses this to choose which replica serves which device.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Sizes of blocks of consecutive devices, from the inside out; each is a multiple of the one before it. Devices d and
/// e are in one block of b devices when d / b == e / b. Empty if all devices are equally near.
using Network = std::vector<Index>;

/// Fails with Code::mesh unless each block size is a larger multiple of the one before it.
[[nodiscard]] Result<void> validate(const Network& network);

/// The distance of two devices: the number of the smallest block that has both, or network.size() if no block has both.
[[nodiscard]] inline std::size_t distance(const Network& network, Index a, Index b) {
    std::size_t level = 0;
    while (level < network.size() && a / network[level] != b / network[level]) ++level;
    return level;
}

}  // namespace reshard
