// Arrays whose extents differ, for users of an Executor. A target that is larger than its source is padded with a fill
// value; a smaller one is stripped. Element i of a dimension stays element i. MoveOptions::fill does all of it.
#pragma once

#include "reshard/execute.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// The move of the elements that both arrays have. Each dimension of both layouts has the smaller of the two extents,
/// and each device keeps its indices below it. Ends of one shape stay as they are. Element types stay, too.
/// Errors: as validate; mismatch (numbers of dimensions differ); unsupported (2^22 pieces, or a target with summands
/// that is padded).
[[nodiscard]] Result<Problem> common_extents(const Layout& source, const Layout& target);

/// The places of this rank's tiles of common_extents in its dense row-major tiles of the whole arrays.
[[nodiscard]] Storages storages_within(const Layout& source, const Layout& target, Index rank);

/// Fills the elements of this rank's dense target tile that have no element in the source. `element` has the bytes of
/// one element; empty: zeros. Errors: as common_extents; mismatch (a size).
[[nodiscard]] Result<void> fill_padding(const Layout& source, const Layout& target, Index rank, Elements out,
                                        std::span<const std::byte> element = {});

}  // namespace reshard
