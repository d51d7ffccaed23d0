// The caller's memory for the elements of one tile, with their type.
#pragma once

#include <complex>
#include <concepts>
#include <ranges>
#include <span>

#include "reshard/layout.hpp"

namespace reshard {

/// The element type of a C++ type. Specialize it for a type that is not listed here, such as a 16-bit float:
///   template <> struct reshard::ElementType<half> { static constexpr std::optional<DType> dtype = DType::f16; };
template <class T>
struct ElementType;

/// std::byte: elements of any type.
template <>
struct ElementType<std::byte> {
    static constexpr std::optional<DType> dtype = std::nullopt;  ///< any type
};
/// bool.
template <>
struct ElementType<bool> {
    static constexpr std::optional<DType> dtype = DType::boolean;  ///< bool
};
/// Signed integers, by their size.
template <std::signed_integral T>
requires(sizeof(T) <= 8) struct ElementType<T> {
    /// The type of that size.
    static constexpr std::optional<DType> dtype = sizeof(T) == 1   ? DType::i8
                                                  : sizeof(T) == 2 ? DType::i16
                                                  : sizeof(T) == 4 ? DType::i32
                                                                   : DType::i64;
};
/// Unsigned integers, by their size.
template <std::unsigned_integral T>
requires(sizeof(T) <= 8) struct ElementType<T> {
    /// The type of that size.
    static constexpr std::optional<DType> dtype = sizeof(T) == 1   ? DType::u8
                                                  : sizeof(T) == 2 ? DType::u16
                                                  : sizeof(T) == 4 ? DType::u32
                                                                   : DType::u64;
};
/// float.
template <>
struct ElementType<float> {
    static constexpr std::optional<DType> dtype = DType::f32;  ///< f32
};
/// double.
template <>
struct ElementType<double> {
    static constexpr std::optional<DType> dtype = DType::f64;  ///< f64
};
/// std::complex<float>.
template <>
struct ElementType<std::complex<float>> {
    static constexpr std::optional<DType> dtype = DType::c64;  ///< c64
};
/// std::complex<double>.
template <>
struct ElementType<std::complex<double>> {
    static constexpr std::optional<DType> dtype = DType::c128;  ///< c128
};

/// Contiguous memory whose elements have an ElementType: a vector, an array, a span.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && requires {
    ElementType<std::ranges::range_value_t<R>>::dtype;
};

/// A borrowed view of elements to read, row-major. It converts from a vector or a span.
struct ConstElements {
    std::span<const std::byte> bytes;  ///< all elements
    std::optional<DType> dtype;        ///< nullopt: bytes of any type

    ConstElements() = default;
    /// The elements of a range, with its element type.
    template <ElementRange R>
    ConstElements(const R& range)
        : bytes(std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))),
          dtype(ElementType<std::ranges::range_value_t<R>>::dtype) {}
};

/// A borrowed view of elements to write, row-major. It converts from a vector or a span.
struct Elements {
    std::span<std::byte> bytes;  ///< all elements
    std::optional<DType> dtype;  ///< nullopt: bytes of any type

    Elements() = default;
    /// The elements of a range, with its element type.
    template <ElementRange R>
    Elements(R&& range)
        : bytes(std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))),
          dtype(ElementType<std::ranges::range_value_t<R>>::dtype) {}
};

}  // namespace reshard
