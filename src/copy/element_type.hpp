// From a dtype to the C++ type of its elements.
#pragma once

#include <cmath>
#include <type_traits>

#include "src/copy/elements.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

/// A float of 8 bits: sign, exponent, explicit mantissa bits. A finite one has no infinity: its only NaN has all bits
/// set. Elements of this type move and are cast, but are never combined.
template <int mantissa, bool finite>
struct Eighth {
    using Number = float;
    std::uint8_t bits;

    static float number(Eighth a) {
        using Float = std::numeric_limits<float>;
        const int exponent = (a.bits & 0x7f) >> mantissa;
        const int fraction = a.bits & ((1 << mantissa) - 1);
        const float sign = (a.bits & 0x80) != 0 ? -1.0F : 1.0F;
        if (finite && (a.bits & 0x7f) == 0x7f) return std::copysign(Float::quiet_NaN(), sign);
        if (!finite && exponent == exponent_max)
            return std::copysign(fraction == 0 ? Float::infinity() : Float::quiet_NaN(), sign);
        if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
        return sign * std::ldexp(static_cast<float>(fraction + (1 << mantissa)), exponent - bias - mantissa);
    }

    /// The nearest value; of two, the one whose last bit is zero.
    static Eighth of(float value) {
        const auto bits = bits_as<std::uint32_t>(value);
        const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80U);
        const std::uint32_t magnitude = bits & 0x7fffffffU;
        constexpr std::uint8_t nan = finite ? 0x7f : static_cast<std::uint8_t>(0x7f & ~((1 << (mantissa - 1)) - 1));
        constexpr auto infinity = static_cast<std::uint8_t>(exponent_max << mantissa);
        if (magnitude > 0x7f800000U) return {static_cast<std::uint8_t>(sign | nan)};
        constexpr int dropped = 23 - mantissa;
        std::uint32_t rounded = 0;
        if (magnitude < static_cast<std::uint32_t>(127 - bias + 1) << 23) {
            // The result is subnormal: one unit in the last place of the sum is one unit of the result.
            const float unit = std::ldexp(1.0F, 1 - bias - mantissa + 23);
            rounded = bits_as<std::uint32_t>(bits_as<float>(magnitude) + unit) - bits_as<std::uint32_t>(unit);
        } else {
            const std::uint32_t up = magnitude + (1U << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1U);
            rounded = (up - (static_cast<std::uint32_t>(127 - bias) << 23)) >> dropped;
        }
        constexpr std::uint32_t most = finite ? 0x7e : infinity - 1;
        if (rounded > most) rounded = finite ? nan : infinity;
        return {static_cast<std::uint8_t>(sign | rounded)};
    }

private:
    static constexpr int exponent_max = (1 << (7 - mantissa)) - 1;
    static constexpr int bias = exponent_max / 2;
};
using E4M3 = Eighth<3, true>;
using E5M2 = Eighth<2, false>;

/// True for the elements that can be combined.
template <class Element>
inline constexpr bool combines = requires {
    Element::is_ordered;
};

/// True for complex numbers.
template <class Element>
inline constexpr bool has_parts = requires(Element element) {
    element.imaginary;
};

/// visit(Element{}) for the element type of `dtype`.
template <class Visit>
auto with_element_type(DType dtype, const Visit& visit) -> decltype(visit(Boolean{})) {
    switch (dtype) {
#define X(name, Element, ...)                                              \
    static_assert(sizeof(Element) == tables::row(DType::name).bytes);      \
    static_assert(combines<Element> == tables::row(DType::name).combines); \
    case DType::name:                                                      \
        return visit(Element{});
        RESHARD_DTYPES(X, X)
#undef X
    }
    __builtin_unreachable();
}

}  // namespace reshard
