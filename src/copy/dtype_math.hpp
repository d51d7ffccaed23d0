// Element types as they lie in memory, and how each combines. Integers wrap; bool is or and and; f16 and bf16 compute
// in float and round to nearest even once per operation; complex numbers multiply by the schoolbook. max and min of
// floats do not depend on order: NaN wins, and of two zeros max takes +0 and min -0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "reshard/algebra/schedule.hpp"

namespace reshard {

template <class T>
struct Integer {
    T value;
    static constexpr bool is_ordered = true;
    static constexpr bool is_scaled = false;
    static Integer lowest() { return {std::numeric_limits<T>::min()}; }
    static Integer highest() { return {std::numeric_limits<T>::max()}; }
    static Integer one() { return {1}; }
    static Integer sum(Integer a, Integer b) { return {static_cast<T>(wide(a) + wide(b))}; }
    static Integer prod(Integer a, Integer b) { return {static_cast<T>(wide(a) * wide(b))}; }
    static Integer max(Integer a, Integer b) { return b.value > a.value ? b : a; }
    static Integer min(Integer a, Integer b) { return b.value < a.value ? b : a; }

private:
    static std::uint64_t wide(Integer a) { return static_cast<std::uint64_t>(a.value); }  // wrapping is defined
};

struct Boolean {
    std::uint8_t value;
    static constexpr bool is_ordered = true;
    static constexpr bool is_scaled = false;
    static Boolean lowest() { return {0}; }
    static Boolean highest() { return {1}; }
    static Boolean one() { return {1}; }
    static Boolean sum(Boolean a, Boolean b) { return {static_cast<std::uint8_t>((a.value | b.value) != 0)}; }
    static Boolean prod(Boolean a, Boolean b) { return {static_cast<std::uint8_t>(a.value != 0 && b.value != 0)}; }
    static Boolean max(Boolean a, Boolean b) { return sum(a, b); }
    static Boolean min(Boolean a, Boolean b) { return prod(a, b); }
};

// Adding half the last kept bit, less one when that bit is even, rounds to nearest even; NaN must not round to
// infinity.
inline std::uint16_t to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// IEEE binary16 without compiler support for it. The scalings by powers of two are exact, so the hardware's own
// rounding of a float does the rounding of subnormals.
inline float from_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    if ((half & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x7fffffu));
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

inline std::uint16_t to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 2^16 or beyond
    if (magnitude < 0x38800000u) {                                                    // below 2^-14: subnormal
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;  // one unit of 0.5f's last place is 2^-24
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// What holds a float: its bits, and the number type it computes in.
template <class T>
struct Whole {
    using Number = T;
    T bits;
    [[nodiscard]] T value() const { return bits; }
    static T rounded(T value) { return value; }
};

struct Brain {
    using Number = float;
    std::uint16_t bits;
    [[nodiscard]] float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
    static std::uint16_t rounded(float value) { return to_bfloat16(value); }
};

struct Half {
    using Number = float;
    std::uint16_t bits;
    [[nodiscard]] float value() const { return from_half(bits); }
    static std::uint16_t rounded(float value) { return to_half(value); }
};

template <class Held>
struct Floating {
    using Number = typename Held::Number;
    Held held;
    static constexpr bool is_ordered = true;
    static constexpr bool is_scaled = true;
    static Floating lowest() { return of(-std::numeric_limits<Number>::infinity()); }
    static Floating highest() { return of(std::numeric_limits<Number>::infinity()); }
    static Floating one() { return of(1); }
    static Floating sum(Floating a, Floating b) { return of(a.held.value() + b.held.value()); }
    static Floating prod(Floating a, Floating b) { return of(a.held.value() * b.held.value()); }
    static Floating max(Floating a, Floating b) { return first(a, b, a.held.value() > b.held.value(), false); }
    static Floating min(Floating a, Floating b) { return first(a, b, a.held.value() < b.held.value(), true); }
    static Floating scaled(Floating a, Scale scale) {
        return of(a.held.value() * static_cast<Number>(scale.times) / static_cast<Number>(scale.over));
    }

private:
    static Floating of(Number value) { return {{Held::rounded(value)}}; }
    static Floating first(Floating a, Floating b, bool a_leads, bool negative) {
        const Number x = a.held.value();
        const Number y = b.held.value();
        if (x == y) return std::signbit(x) == negative ? a : b;
        return a_leads || std::isnan(x) ? a : b;  // when b is NaN nothing leads
    }
};

template <class T>
struct Complex {
    T real;
    T imaginary;
    static constexpr bool is_ordered = false;
    static constexpr bool is_scaled = true;
    static Complex one() { return {1, 0}; }
    static Complex sum(Complex a, Complex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
    static Complex prod(Complex a, Complex b) {
        return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
    }
    static Complex scaled(Complex a, Scale scale) {
        const auto times = static_cast<T>(scale.times);
        const auto over = static_cast<T>(scale.over);
        return {a.real * times / over, a.imaginary * times / over};
    }
};

/// visit(Element{}) for the element type of `dtype`; a default result for types that are bytes only.
template <class Visit>
auto with_element(DType dtype, const Visit& visit) -> decltype(visit(Boolean{})) {
    switch (dtype) {
        case DType::boolean:
            return visit(Boolean{});
        case DType::i8:
            return visit(Integer<std::int8_t>{});
        case DType::u8:
            return visit(Integer<std::uint8_t>{});
        case DType::i16:
            return visit(Integer<std::int16_t>{});
        case DType::u16:
            return visit(Integer<std::uint16_t>{});
        case DType::i32:
            return visit(Integer<std::int32_t>{});
        case DType::u32:
            return visit(Integer<std::uint32_t>{});
        case DType::i64:
            return visit(Integer<std::int64_t>{});
        case DType::u64:
            return visit(Integer<std::uint64_t>{});
        case DType::f16:
            return visit(Floating<Half>{});
        case DType::bf16:
            return visit(Floating<Brain>{});
        case DType::f32:
            return visit(Floating<Whole<float>>{});
        case DType::f64:
            return visit(Floating<Whole<double>>{});
        case DType::c64:
            return visit(Complex<float>{});
        case DType::c128:
            return visit(Complex<double>{});
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            break;
    }
    return {};
}

}  // namespace reshard
