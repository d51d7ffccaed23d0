// Casts elements from one floating type to another.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard::files {

/// True for two floating types that float holds, which is every one except f64. A cast rounds to nearest even, once. A
/// number that is too large becomes infinity, or NaN in a type without infinity. A NaN stays a NaN.
[[nodiscard]] bool can_cast(DType from, DType to);

/// Casts the elements of one region into another. pre: can_cast; same extents.
void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes);

/// Copies the elements of one region into another, where the first has big-endian elements. Casts them if the types
/// differ. pre: same extents; equal types, or can_cast.
void copy_swapped(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
                  std::byte* target_bytes);

}  // namespace reshard::files
