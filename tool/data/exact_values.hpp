// Small whole numbers as elements of every dtype. Sums of them are exact in any order, so sums can be verified bit by
// bit.
#pragma once

#include <span>

#include "reshard/layout.hpp"

namespace reshard::cli {

/// The largest n such that all of 0..n are exact.
[[nodiscard]] Index exact_max(DType dtype);

/// pre: 0 <= value <= exact_max(dtype), one element of room. Both parts of a complex number become the value.
void encode(DType dtype, Index value, std::span<std::byte> element);

/// The inverse. An element that encode did not make gives another value than the expected one: -1 when it is no whole
/// number.
[[nodiscard]] Index decode(DType dtype, std::span<const std::byte> element);

}  // namespace reshard::cli
