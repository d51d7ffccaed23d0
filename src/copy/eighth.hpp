// Floats of 8 bits. Hosts and devices compile the same text. Only integer operations and exact or rounding operations
// of floats are used, so both give the same bits.
#pragma once

#include "src/copy/kernels/half_floats.hpp"

namespace reshard {

/// A float of 8 bits: sign, exponent, explicit mantissa bits. A finite one has no infinity: its only NaN has all bits
/// set. Elements of this type move and are cast, but are never combined.
template <int mantissa, bool finite>
struct Eighth {
    using Number = float;
    std::uint8_t bits;

    // Scaling by a power of two is exact, so subnormals need no case of their own.
    RESHARD_ON_DEVICE static float number(Eighth a) {
        const std::uint32_t sign = static_cast<std::uint32_t>(a.bits & 0x80u) << 24;
        const std::uint32_t magnitude = a.bits & 0x7fu;
        if (magnitude > most + (finite ? 0u : 1u)) return bits_as<float>(sign | 0x7fc00000u);
        if (magnitude > most) return bits_as<float>(sign | 0x7f800000u);
        const float scaled = bits_as<float>(magnitude << (23 - mantissa)) * power_of_two(127 - bias);
        return bits_as<float>(sign | bits_as<std::uint32_t>(scaled));
    }

    /// The nearest value; of two, the one whose last bit is zero.
    RESHARD_ON_DEVICE static Eighth of(float value) {
        const auto all = bits_as<std::uint32_t>(value);
        const auto sign = static_cast<std::uint8_t>((all >> 24) & 0x80u);
        const std::uint32_t magnitude = all & 0x7fffffffu;
        if (magnitude > 0x7f800000u) return {static_cast<std::uint8_t>(sign | nan)};
        constexpr int dropped = 23 - mantissa;
        std::uint32_t rounded = 0;
        if (magnitude < static_cast<std::uint32_t>(127 - bias + 1) << 23) {
            // The result is subnormal: one unit in the last place of the sum is one unit of the result.
            const float unit = power_of_two(1 - bias - mantissa + 23);
            rounded = bits_as<std::uint32_t>(bits_as<float>(magnitude) + unit) - bits_as<std::uint32_t>(unit);
        } else {
            const std::uint32_t up = magnitude + (1u << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1u);
            rounded = (up - (static_cast<std::uint32_t>(127 - bias) << 23)) >> dropped;
        }
        if (rounded > most) rounded = finite ? nan : most + 1;
        return {static_cast<std::uint8_t>(sign | rounded)};
    }

private:
    static constexpr int exponent_max = (1 << (7 - mantissa)) - 1;
    static constexpr int bias = exponent_max / 2;
    static constexpr std::uint32_t most = finite ? 0x7eu : static_cast<std::uint32_t>(exponent_max << mantissa) - 1u;
    static constexpr std::uint32_t nan = finite ? 0x7fu : 0x7fu & ~((1u << (mantissa - 1)) - 1u);
    RESHARD_ON_DEVICE static float power_of_two(int exponent) {
        return bits_as<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
    }
};
using E4M3 = Eighth<3, true>;
using E5M2 = Eighth<2, false>;

}  // namespace reshard
