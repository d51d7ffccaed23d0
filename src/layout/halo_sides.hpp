// One dimension of the cells that a device holds. A shard holds the same cells on all its devices.
#pragma once

#include "reshard/halo/halo.hpp"

namespace reshard {

/// The cells of a shard, as in held_cells. Empty if the shard owns nothing.
[[nodiscard]] Side held_side(const Dim& dim, const Halo& halo, Index shard);
/// The cells of a shard with only one cell for each element, as in distinct_cells. Empty if the shard owns nothing.
[[nodiscard]] Side distinct_side(const Dim& dim, const Halo& halo, Index shard);

/// The cells around one block, as in distinct_side. pre: the block is not empty, and is its shard's only one.
[[nodiscard]] Interval distinct_interval(const Dim& dim, const Halo& halo, const Interval& block);

}  // namespace reshard
