// Small whole numbers as elements of every dtype. Sums of them are exact in any order, so sums can be verified bit by
// bit.
#pragma once

#include <span>

#include "reshard/layout.hpp"

namespace reshard::cli {

/// Returns the largest n such that all of 0..n are exact.
[[nodiscard]] Index exact_max(DType dtype);

/// Writes a value as an element. Both parts of a complex number become the value. pre: 0 <= value <= exact_max(dtype),
/// room for one element.
void encode(DType dtype, Index value, std::span<std::byte> element);

/// The inverse of encode. An element that encode did not make gives another value than the expected one, and -1 if it
/// is no whole number.
[[nodiscard]] Index decode(DType dtype, std::span<const std::byte> element);

}  // namespace reshard::cli
