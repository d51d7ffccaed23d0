// How elements of each dtype add up: the same bits on a device, on its double and in the other backends.
#pragma once

#include <cstring>

#include "copy_body.hpp"

namespace reshard::nccl {

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

// Half of the last kept bit, less one where that bit is even, rounds to nearest even; NaN must not round to infinity.
RESHARD_ON_DEVICE std::uint16_t to_bfloat16(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Scalings by powers of two are exact, so the hardware's own rounding of a float rounds the subnormals.
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

/// Element types have the bits of memory and a sum. Integers are unsigned: wrapping is defined.
template <class T>
struct Plain {
    T value;
    RESHARD_ON_DEVICE friend Plain operator+(Plain a, Plain b) { return {static_cast<T>(a.value + b.value)}; }
};
struct Boolean {
    std::uint8_t value;
    RESHARD_ON_DEVICE friend Boolean operator+(Boolean a, Boolean b) {
        return {static_cast<std::uint8_t>((a.value | b.value) != 0)};
    }
};
struct Half {
    std::uint16_t bits;
    RESHARD_ON_DEVICE friend Half operator+(Half a, Half b) { return {to_half(from_half(a.bits) + from_half(b.bits))}; }
};
struct BFloat16 {
    std::uint16_t bits;
    RESHARD_ON_DEVICE friend BFloat16 operator+(BFloat16 a, BFloat16 b) {
        return {to_bfloat16(from_bfloat16(a.bits) + from_bfloat16(b.bits))};
    }
};
// A complex number adds as its two parts, which is how it is given here: twice as many elements of half the size.

/// target = target + source, for the elements of one vector at a time.
template <class Element, class Vector>
RESHARD_ON_DEVICE void add_rows(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    constexpr std::uint32_t elements = sizeof(Vector) / sizeof(Element);
    struct alignas(Vector) Pack {
        Element element[elements];
    };
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        const std::uint32_t unit = block * units_block + thread + i * threads;
        if (unit >= box.units) continue;
        const Offsets at = offsets_of(box, unit);
        const Vector read = *reinterpret_cast<const Vector*>(box.source + at.source);  // whole vectors, then elements
        const Vector old = *reinterpret_cast<const Vector*>(box.target + at.target);
        const auto from = bits_as<Pack>(read);
        auto to = bits_as<Pack>(old);
        RESHARD_UNROLL
        for (std::uint32_t k = 0; k < elements; ++k) to.element[k] = to.element[k] + from.element[k];
        *reinterpret_cast<Vector*>(box.target + at.target) = bits_as<Vector>(to);
    }
}

}  // namespace reshard::nccl
