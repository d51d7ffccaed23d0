// One dimension as PyTorch cuts it: one mesh axis after another, each time by torch.chunk.
#pragma once

#include <optional>

#include "reshard/layout.hpp"

namespace reshard::notation {

/// The cut of a dimension by one mesh axis, which makes `shards` of each piece that it finds. A cutter with a split
/// cuts the piece into `split` parts first, and each part into `shards`; shard i has the i-th of every part.
struct Cutter {
    Index shards = 1;
    Index split = 1;
    Atom atom;  ///< of the axis
};

/// Dimensions that would take more shards and splits than this are not cut one by one.
inline constexpr Index chunks_max = Index{1} << 20;

/// The numbers of the cutters in the order that their splits describe, without cutters of one shard. A split describes
/// an order if it is the number of shards that later axes have made by then. nullopt if some split is not. `cutters`
/// are in mesh order.
[[nodiscard]] std::optional<std::vector<std::size_t>> order_said_by(const std::vector<Cutter>& cutters);

/// The dimension after all cutters, in the order of the list; nullopt where chunks_max is passed.
[[nodiscard]] std::optional<Dim> cut_by(Index extent, const std::vector<Cutter>& cutters);

}  // namespace reshard::notation
