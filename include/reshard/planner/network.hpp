// Which devices are near each other: what a schedule looks at to choose who serves whom.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Sizes of blocks of consecutive devices, from the inside out, each a multiple of the one before it: d and e are in
/// one block of b devices when d / b == e / b. None where all devices are as near as any.
using Network = std::vector<Index>;

/// Fails with Code::mesh unless each block is larger than the one inside it, and a multiple of it.
[[nodiscard]] Result<void> validate(const Network& network);

/// How far two devices are apart: the number of the least block that has both; network.size() where none has.
[[nodiscard]] inline std::size_t distance(const Network& network, Index a, Index b) {
    std::size_t level = 0;
    while (level < network.size() && a / network[level] != b / network[level]) ++level;
    return level;
}

}  // namespace reshard
