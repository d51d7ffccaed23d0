// 64-bit arithmetic that detects overflow. Every count, size and offset of the library is an Index.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace reshard {

using Index = std::int64_t;  ///< elements, bytes, devices, tile numbers
/// The largest Index. Saturating sums and products stop here.
inline constexpr Index index_max = std::numeric_limits<Index>::max();

/// a * b, or nullopt if it does not fit.
[[nodiscard]] constexpr std::optional<Index> checked_multiply(Index a, Index b) {
    Index product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

/// a + b, or nullopt if it does not fit.
[[nodiscard]] constexpr std::optional<Index> checked_add(Index a, Index b) {
    Index sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

/// a * b, or index_max if it does not fit. pre: a, b >= 0.
[[nodiscard]] constexpr Index saturating_multiply(Index a, Index b) {
    return checked_multiply(a, b).value_or(index_max);
}

/// a + b, or index_max if it does not fit. pre: a, b >= 0.
[[nodiscard]] constexpr Index saturating_add(Index a, Index b) { return checked_add(a, b).value_or(index_max); }

/// The least q with q * b >= a. pre: a >= 0, b > 0. Never overflows.
[[nodiscard]] constexpr Index ceil_divide(Index a, Index b) { return a / b + (a % b != 0 ? 1 : 0); }

/// a * b / c rounded up in 128 bits, saturating. pre: a, b >= 0, c > 0.
[[nodiscard]] constexpr Index scale_up(Index a, Index b, Index c) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * static_cast<Wide>(b);
    const Wide quotient = (product + static_cast<Wide>(c) - 1) / static_cast<Wide>(c);
    return quotient > static_cast<Wide>(index_max) ? index_max : static_cast<Index>(quotient);
}

}  // namespace reshard
