// A plan run in pieces: the same steps for one part of the array after the other, so that what lies between source and
// target is as small as a piece.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// How a plan is cut. In blocks of `block` indices of dimension `dim` (what is left of its extent when the least common
/// multiple of the numbers of shards on the way is divided out) no layout cuts, so no step tells the indices of a block
/// apart: each piece has `extent` indices of every block, the last of the `count` pieces maybe fewer.
struct SplitPlan {
    Index count = 1;
    std::size_t dim = 0;
    Index extent = 0;
    Index block = 0;
    friend bool operator==(const SplitPlan&, const SplitPlan&) = default;
};

/// The fewest pieces in which source, target and workspace take at most `footprint_bytes_max` a device; one piece when
/// the whole plan does. nullopt when even pieces of one index do not, or when no dimension can be cut: each has blocks
/// of one index, or does not divide somewhere on the way.
[[nodiscard]] std::optional<SplitPlan> split_within(const Plan& plan, Index footprint_bytes_max, bool donate);

/// Source, target and the workspace of one piece. Of several pieces no tile between steps is counted on to lie in the
/// memory of an end, where the other pieces are.
[[nodiscard]] Index footprint_bytes(const Plan& plan, const SplitPlan& pieces, bool donate);

/// The plan of piece number `piece`: the dimension that is cut is seen as two, its blocks and the indices in a block,
/// of which there are fewer.
[[nodiscard]] Plan plan_of(const Plan& plan, const SplitPlan& pieces, Index piece);

/// Where the piece's tile lies, seen so, in the memory of the whole tile, which `whole` describes.
[[nodiscard]] Storage storage_of(const Storage& whole, const SplitPlan& pieces, Index piece);

}  // namespace reshard
