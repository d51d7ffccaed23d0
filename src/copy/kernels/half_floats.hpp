// Floats of 16 bits. They choose between values and never between ways, so that compilers vectorize loops of them.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/copy/kernels/on_device.hpp"

namespace reshard {

template <class To, class From>
RESHARD_ON_DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

RESHARD_ON_DEVICE float from_bfloat16(std::uint16_t bits) {
    return bits_as<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Adding half the last kept bit, minus one if that bit is even, rounds to nearest even. NaN must not round to infinity.
RESHARD_ON_DEVICE std::uint16_t to_bfloat16(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// IEEE binary16 without compiler support. Scaling by a power of two is exact, so the hardware rounding of a float also
// rounds subnormals.
RESHARD_ON_DEVICE float from_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    if ((half & 0x7c00u) == 0x7c00u) return bits_as<float>(sign | 0x7f800000u | (magnitude & 0x7fffffu));
    const float scaled = bits_as<float>(magnitude) * 0x1p112f;
    return bits_as<float>(sign | bits_as<std::uint32_t>(scaled));
}

RESHARD_ON_DEVICE std::uint16_t to_half(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 2^16 or beyond
    if (magnitude < 0x38800000u) {                                                    // below 2^-14: subnormal
        const float shifted = bits_as<float>(magnitude) + 0.5f;  // one unit of 0.5f's last place is 2^-24
        return static_cast<std::uint16_t>(sign | (bits_as<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace reshard
