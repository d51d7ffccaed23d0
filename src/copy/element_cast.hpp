// One element as an element of another type. Hosts and devices compile the same text, so both give the same bits.
#pragma once

#include <type_traits>

#include "src/copy/eighth.hpp"
#include "src/copy/elements.hpp"

namespace reshard {

/// True for complex numbers.
template <class Element>
inline constexpr bool has_parts = requires(Element element) {
    element.imaginary;
};

/// True for floats.
template <class Element>
inline constexpr bool is_real = !has_parts<Element> && std::is_floating_point_v<typename Element::Number>;

/// True for integers.
template <class Element>
inline constexpr bool is_whole =
    !has_parts<Element> && std::is_integral_v<typename Element::Number> && !std::is_same_v<Element, Boolean>;

/// True if a move may cast From to To: as tables::can_cast, for the C++ types.
template <class From, class To>
inline constexpr bool casts_to = is_real<From>&& is_real<To> ? !std::is_same_v<From, To>
                                                             : is_whole<From> && is_whole<To> &&
                                                                   sizeof(To) > sizeof(From) &&
                                                                   (std::is_signed_v<typename To::Number> ||
                                                                    std::is_unsigned_v<typename From::Number>);

// A conversion keeps the sign and the payload of a NaN on a host, and loses both on a device.
RESHARD_ON_DEVICE float to_float(double number) {
#if defined(__CUDA_ARCH__)
    if (number != number) {
        const auto bits = bits_as<std::uint64_t>(number);
        const auto sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000u;
        return bits_as<float>(sign | 0x7fc00000u | (static_cast<std::uint32_t>(bits >> 29) & 0x7fffffu));
    }
#endif
    return static_cast<float>(number);
}

RESHARD_ON_DEVICE double to_double(float number) {
#if defined(__CUDA_ARCH__)
    if (number != number) {
        const auto bits = bits_as<std::uint32_t>(number);
        const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x80000000u) << 32;
        return bits_as<double>(sign | 0x7ff8000000000000u | (static_cast<std::uint64_t>(bits & 0x7fffffu) << 29));
    }
#endif
    return static_cast<double>(number);
}

/// A double as a float that every narrower type rounds as it would round the double. If the float is inexact, its last
/// bit is 1 (round to odd), so it is never halfway between two numbers of a narrower type.
RESHARD_ON_DEVICE float to_odd(double number) {
    const float near = to_float(number);
    const auto back = static_cast<double>(near);
    if (back == number || number != number) return near;
    const std::uint32_t away = (number < 0 ? back < number : back > number) ? 1 : 0;
    return bits_as<float>((bits_as<std::uint32_t>(near) - away) | 1u);
}

/// The element as an element of another type, rounded once. pre: casts_to<From, To>.
template <class To, class From>
RESHARD_ON_DEVICE To cast_element(From element) {
    using Number = typename From::Number;
    using Wanted = typename To::Number;
    const Number number = From::number(element);
    if constexpr (std::is_same_v<Number, double> && sizeof(To) < sizeof(float))
        return To::of(to_odd(number));
    else if constexpr (std::is_same_v<Number, double> && std::is_same_v<Wanted, float>)
        return To::of(to_float(number));
    else if constexpr (std::is_same_v<Number, float> && std::is_same_v<Wanted, double>)
        return To::of(to_double(number));
    else
        return To::of(static_cast<Wanted>(number));
}

}  // namespace reshard
