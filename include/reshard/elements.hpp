// A program's memory that holds the elements of one tile, and of which type they are.
#pragma once

#include <complex>
#include <concepts>
#include <ranges>
#include <span>

#include "reshard/layout.hpp"

namespace reshard {

/// The element type that a type of C++ stands for. A type that is not listed here, such as a 16-bit float, gets one:
///   template <> struct reshard::ElementType<half> { static constexpr std::optional<DType> dtype = DType::f16; };
template <class T>
struct ElementType;

/// Bytes stand for elements of any type.
template <>
struct ElementType<std::byte> {
    static constexpr std::optional<DType> dtype = std::nullopt;  ///< any
};
/// Of bool.
template <>
struct ElementType<bool> {
    static constexpr std::optional<DType> dtype = DType::boolean;  ///< bool
};
/// Of signed integers: by their size.
template <std::signed_integral T>
requires(sizeof(T) <= 8) struct ElementType<T> {
    /// The type of that size.
    static constexpr std::optional<DType> dtype = sizeof(T) == 1   ? DType::i8
                                                  : sizeof(T) == 2 ? DType::i16
                                                  : sizeof(T) == 4 ? DType::i32
                                                                   : DType::i64;
};
/// Of unsigned integers: by their size.
template <std::unsigned_integral T>
requires(sizeof(T) <= 8) struct ElementType<T> {
    /// The type of that size.
    static constexpr std::optional<DType> dtype = sizeof(T) == 1   ? DType::u8
                                                  : sizeof(T) == 2 ? DType::u16
                                                  : sizeof(T) == 4 ? DType::u32
                                                                   : DType::u64;
};
/// Of float.
template <>
struct ElementType<float> {
    static constexpr std::optional<DType> dtype = DType::f32;  ///< f32
};
/// Of double.
template <>
struct ElementType<double> {
    static constexpr std::optional<DType> dtype = DType::f64;  ///< f64
};
/// Of std::complex<float>.
template <>
struct ElementType<std::complex<float>> {
    static constexpr std::optional<DType> dtype = DType::c64;  ///< c64
};
/// Of std::complex<double>.
template <>
struct ElementType<std::complex<double>> {
    static constexpr std::optional<DType> dtype = DType::c128;  ///< c128
};

/// Contiguous memory whose elements have an ElementType: a vector, an array, a span.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && requires {
    ElementType<std::ranges::range_value_t<R>>::dtype;
};

/// Elements that are read, row-major; made from a vector or a span of them. Borrowed.
struct ConstElements {
    std::span<const std::byte> bytes;  ///< of all elements
    std::optional<DType> dtype;        ///< nullopt: bytes of any type

    ConstElements() = default;
    /// Those of a range, of its element type.
    template <ElementRange R>
    ConstElements(const R& range)
        : bytes(std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))),
          dtype(ElementType<std::ranges::range_value_t<R>>::dtype) {}
};

/// Elements that are written, row-major; made from a vector or a span of them. Borrowed.
struct Elements {
    std::span<std::byte> bytes;  ///< of all elements
    std::optional<DType> dtype;  ///< nullopt: bytes of any type

    Elements() = default;
    /// Those of a range, of its element type.
    template <ElementRange R>
    Elements(R&& range)
        : bytes(std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))),
          dtype(ElementType<std::ranges::range_value_t<R>>::dtype) {}
};

}  // namespace reshard
