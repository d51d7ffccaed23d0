// Numbers of every format, computed in integers by the definition of each format. It shares no code with the casts
// under test, which compute with the processor's floats.
#pragma once

#include <cstdint>

#include "reshard/layout.hpp"

namespace reshard::conformance {

/// A number that no format rounds: sign * mantissa * 2^exponent.
struct Number {
    enum class Kind { finite, infinite, nan };
    Kind kind = Kind::finite;
    bool negative = false;
    std::uint64_t mantissa = 0;
    int exponent = 0;
};

/// The bits of a floating format: sign, exponent, mantissa.
struct Format {
    int exponent_bits = 0;
    int mantissa_bits = 0;
    bool has_infinity = true;  ///< false: only the value with all bits set is a NaN
    [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] Format format_of(DType dtype);

/// The number that the element stands for. Integers are numbers, too.
[[nodiscard]] Number decode(DType dtype, std::uint64_t bits);
/// The nearest element; of two, the one whose last bit is zero. nullopt if any NaN is right.
[[nodiscard]] std::optional<std::uint64_t> encode(DType dtype, const Number& number);

/// A whole number.
[[nodiscard]] Number whole(Index value);

/// True if a move may cast `from` to `to`. With `summed`, elements of `from` are summed on the way.
[[nodiscard]] bool may_cast(DType from, DType to, bool summed);
/// True if every number of `narrow` is one of `wide`.
[[nodiscard]] bool includes(DType wide, DType narrow);

}  // namespace reshard::conformance
