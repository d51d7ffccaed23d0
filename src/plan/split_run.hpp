// The pieces of a split run: each is a plan of its own, over a part of the memory of the whole tiles.
#pragma once

#include "reshard/execution.hpp"

namespace reshard {

/// A dimension, and how many of its indices no layout on the way tells apart.
struct Blocks {
    std::size_t dim = 0;
    Index block = 1;
};

/// The outermost dimension with blocks of `enough` indices, whose pieces lie in the longest runs. If no dimension has
/// that many, the outermost of those with the largest blocks. nullopt if all blocks have one index, or do not divide
/// somewhere.
[[nodiscard]] std::optional<Blocks> common_blocks(const Plan& plan, Index enough);

/// The fewest pieces, two or more, such that one piece takes at most this much workspace. nullopt if even pieces of one
/// index take more, or if that needs more than split_pieces_max pieces. Also nullopt if no dimension can be cut: each
/// has blocks of one index, or does not divide somewhere on the way.
[[nodiscard]] std::optional<Split> split_within(const Plan& plan, Index workspace_bytes_max);

/// True when no layout on the way cuts the blocks, so that pieces are plans of their own. pre: can_split.
[[nodiscard]] bool keeps_blocks(const Split& split, const Plan& plan);

/// The indices that a piece has of a block, from its first.
[[nodiscard]] Interval indices_of(const Split& split, std::size_t piece);

/// So many indices has the largest piece of a block.
[[nodiscard]] Index largest_extent(const Split& split);

/// The plan of so many indices of each block: the dimension that is cut is seen as two, its blocks and the indices in a
/// block. pre: keeps_blocks.
[[nodiscard]] Plan plan_of(const Plan& plan, const Split& split, Index extent);

/// The plan of a piece. pre: keeps_blocks.
[[nodiscard]] Plan plan_of_piece(const Plan& plan, const Split& split, std::size_t piece);

/// The storage of the piece's tile in the memory of the whole tile, which `whole` describes.
[[nodiscard]] Storage storage_of(const Storage& whole, const Split& split, std::size_t piece);

}  // namespace reshard
