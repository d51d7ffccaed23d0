// A plan run in pieces: the same steps for one part of the array after the other, so that what lies between source and
// target is as small as a piece.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// How a plan is cut: every tile along dimension `dim`, whose axes are the same in every layout on the way, into
/// `count` pieces of `extent` indices, the last of them maybe fewer.
struct Pieces {
    Index count = 1;
    std::size_t dim = 0;
    Index extent = 0;
    friend bool operator==(const Pieces&, const Pieces&) = default;
};

/// The fewest pieces in which source, target and workspace take at most `footprint_bytes_max` a device; one piece when
/// the whole plan does. nullopt when even pieces of one index do not, or when no dimension can be cut: each is moved
/// by some step, or does not divide.
[[nodiscard]] std::optional<Pieces> pieces_within(const Plan& plan, Index footprint_bytes_max);

/// Source, target and the workspace of one piece. Tiles between two pieces' steps never lie in the target's memory,
/// where the other pieces are.
[[nodiscard]] Index footprint_bytes(const Plan& plan, const Pieces& pieces);

/// The plan of piece number `piece`: the array with fewer indices in the dimension that is cut.
[[nodiscard]] Plan plan_of(const Plan& plan, const Pieces& pieces, Index piece);

/// Where the piece's tile lies in the memory of the whole tile, which `whole` describes.
[[nodiscard]] Storage storage_of(const Storage& whole, const Pieces& pieces, Index piece);

}  // namespace reshard
