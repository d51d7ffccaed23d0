// Dimensions whose indices are blocks of another dimension's indices, such as scales. Shards may share a block.
#pragma once

#include <span>

#include "reshard/model/rules.hpp"

namespace reshard::notation {

using Stretch = ShardedTensor::Stretch;
using Stretches = std::vector<Stretch>;

/// A dimension of blocks.
struct BlockDim {
    Dim dim;              ///< has a block once for each shard that holds some of its indices
    Index blocks = 0;     ///< each counted once
    Stretches held = {};  ///< the blocks of each shard, in the order of `dim`; empty if no block is shared
};

/// Returns the dimension of the blocks of `block` indices of `dim`. `parts`: the extents of the parts that follow each
/// other in `dim`, each in blocks of its own; empty: one part. Errors, without a place: layout (a cut within a block,
/// unless `may_share`; a shard would hold a block twice); unsupported (too many shards).
[[nodiscard]] Result<BlockDim> dim_in_blocks(const Dim& dim, std::span<const Index> parts, Index block, bool may_share);

/// Returns the stretches with each index once, on the first shard that has it. Joins stretches that follow each other
/// in the layout.
[[nodiscard]] Stretches once_each(const Stretches& held);

}  // namespace reshard::notation
