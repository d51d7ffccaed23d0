// The values that a target should hold if the move casts, transposes or pads.
#pragma once

#include "tool/data/values.hpp"

namespace reshard::cli {

/// The change between the source's values and the target's.
struct ValuesChange {
    DType from = DType::f32;
    DType to = DType::f32;
    std::vector<Index> permute = {};  ///< as MoveOptions::permute
    bool fortran_order = false;       ///< boxes list the dimensions from the last to the first
    std::optional<std::vector<std::byte>> fill = std::nullopt;  ///< as MoveOptions::fill; not without bytes
    std::vector<Index> extents = {};  ///< of the source in the order of the target, if there is a fill value
};

/// The values of the target. `values` are the source's, and must outlive the result. They are read as the source has
/// them and changed piece by piece.
[[nodiscard]] std::unique_ptr<Values> changed(Values& values, ValuesChange change);

}  // namespace reshard::cli
