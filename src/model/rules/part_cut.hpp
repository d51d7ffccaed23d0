// Cuts of a dimension that consists of parts, each cut by itself. Heads are units that no cut may divide.
#pragma once

#include <string_view>

#include "reshard/layout.hpp"

namespace reshard::notation {

/// The most pieces that a layout of a rule may have.
inline constexpr Index layout_pieces_max = Index{1} << 22;

/// Units of one index: a part may be cut anywhere.
inline constexpr Index one_index[] = {1};

/// Cuts each of several consecutive parts by ceil-div, in whole units: one number of indices, or one for each part.
/// pre: units >= 1. Errors, without a place: layout (a part that is not whole units); unsupported (more than
/// layout_pieces_max pieces).
[[nodiscard]] Result<Dim> cut_in_parts(AtomList atoms, std::span<const Index> parts, std::span<const Index> units);

/// A dimension of whole heads.
struct HeadCut {
    Dim dim;
    std::vector<Index> copies;  ///< for each part: how often each of its heads stands in the dimension
};

/// Cuts each of several consecutive parts between heads of `heads` indices, one number or one for each part. If a part
/// has fewer heads than there are shards, consecutive shards share a head. The trailing digits that all parts share do
/// not cut the dimension. If one part shares more than another, its heads stand in the dimension once for each shard
/// that has them, so the dimension is longer than the parts. `axes` are the atoms as text. pre: heads >= 1; the atoms
/// are canonical. Errors, without a place: layout (a cut within a head); unsupported, overflow.
[[nodiscard]] Result<HeadCut> cut_between_heads(std::string_view axes, AtomList atoms, std::span<const Index> parts,
                                                std::span<const Index> heads);

/// Fails with Code::layout if `dim` is cut within a unit: a "head" or a "block". `axes` are its atoms as text.
/// pre: size >= 1.
[[nodiscard]] Result<void> keeps_whole(std::string_view axes, const Dim& dim, std::string_view unit, Index size);

}  // namespace reshard::notation
