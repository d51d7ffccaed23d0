// Elements of one float type as those of another.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard::files {

/// Between f32, bf16, f16, f8_e4m3fn and f8_e5m2: to nearest, ties to even, once. What is too large becomes infinity,
/// in f8_e4m3fn, which has none, NaN; a NaN stays one.
[[nodiscard]] bool can_cast(DType from, DType to);

/// Casts the elements of one region into another. pre: can_cast; same extents.
void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes);

}  // namespace reshard::files
