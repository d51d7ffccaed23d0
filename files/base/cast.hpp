// Casts elements of one float type to another.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard::files {

/// True between f32, bf16, f16, f8_e4m3fn and f8_e5m2. A cast rounds once, to nearest, ties to even. Values that are
/// too large become infinity, or NaN in f8_e4m3fn, which has no infinity. NaN stays NaN.
[[nodiscard]] bool can_cast(DType from, DType to);

/// Casts the elements of one region into another. pre: can_cast; same extents.
void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes);

}  // namespace reshard::files
