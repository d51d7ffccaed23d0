// The pieces of a split run: each is a plan of its own, over a part of the memory of the whole tiles.
#pragma once

#include "reshard/execution.hpp"

namespace reshard {

/// The fewest pieces, two or more, of which one takes at most so many bytes of workspace. nullopt when even pieces of
/// one index take more, or when no dimension can be cut: each has blocks of one index, or does not divide somewhere on
/// the way.
[[nodiscard]] std::optional<Split> split_within(const Plan& plan, Index workspace_bytes_max);

/// True when no layout on the way cuts the blocks, and there are no more indices in a piece than in a block.
[[nodiscard]] bool is_split_of(const Split& split, const Plan& plan);

/// The plan of piece number `piece`: the dimension that is cut is seen as two, its blocks and the indices in a block,
/// of which there are fewer. pre: is_split_of.
[[nodiscard]] Plan plan_of(const Plan& plan, const Split& split, Index piece);

/// Where the piece's tile lies, seen so, in the memory of the whole tile, which `whole` describes.
[[nodiscard]] Storage storage_of(const Storage& whole, const Split& split, Index piece);

}  // namespace reshard
