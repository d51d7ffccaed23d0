// The two ends of a move as arrays of one shape, and the places of their tiles in the tiles of tensors.
#pragma once

#include "reshard/model/rows.hpp"

namespace reshard {

/// One end of a move as an array: a tensor, or a part of one.
struct PartEnd {
    Layout array;
    std::optional<TensorPart> part = {};                ///< empty: the array is the tensor
    std::vector<std::optional<std::size_t>> dims = {};  ///< the tensor's dimension for each one of the array; empty
                                                        ///< if only the other end has the dimension
    /// Returns the place of the array's tile in the dense tile of the tensor. `held` is the array's tile on `rank`.
    [[nodiscard]] Storage storage_on(const Tile& held, Index rank) const;
};

/// Errors: as layout_of.
[[nodiscard]] Result<PartEnd> end_of(const TensorPart& part);

/// Both ends of a move.
struct PartEnds {
    PartEnd source;
    PartEnd target;
};

/// Returns both ends with the same dimensions. A dimension of extent 1 that one part lacks is added to it. Whole
/// tensors may be a reshape. Errors: as validate and layout_of; unsupported (unreduced axes); mismatch (element types,
/// or other extents than 1, differ).
[[nodiscard]] Result<PartEnds> ends_of(const PartProblem& parts);

}  // namespace reshard
