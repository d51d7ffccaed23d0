// One dimension as PyTorch cuts it: one mesh axis after another, each time by torch.chunk.
#pragma once

#include <optional>

#include "reshard/layout.hpp"

namespace reshard::notation {

/// What one mesh axis does to a dimension: it makes `shards` of each piece that it finds. One with a split cuts the
/// piece into `split` parts first and each part into `shards`; shard i has the i-th of every part.
struct Cutter {
    Index shards = 1;
    Index split = 1;
    Atom atom;  ///< of the axis
};

/// Dimensions that would take more shards and splits than this are not cut one by one.
inline constexpr Index chunks_max = Index{1} << 20;

/// Where the splits of cutters in mesh order only say in which order they cut (a split is how many shards the later
/// axes have made by then): their numbers in that order, less those of one shard. nullopt when the splits say no order.
[[nodiscard]] std::optional<std::vector<std::size_t>> order_said_by(const std::vector<Cutter>& cutters);

/// The dimension after all cutters, in the order of the list; nullopt where chunks_max is passed.
[[nodiscard]] std::optional<Dim> cut_by(Index extent, const std::vector<Cutter>& cutters);

}  // namespace reshard::notation
