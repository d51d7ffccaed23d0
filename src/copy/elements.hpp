// Element types as they lie in memory, and how each combines. Hosts and devices compile the same text, so both give the
// same bits. Integers wrap. On bool, a sum is `or` and a product is `and`. f16 and bf16 compute in float and round to
// nearest even once per operation. Complex numbers multiply by the schoolbook. max and min of floats do not depend on
// order: NaN wins, max prefers +0 over -0, and min prefers -0.
#pragma once

#include <cstdint>
#include <limits>

#include "src/copy/kernels/half_floats.hpp"
#include "src/tables/dtypes.def"

namespace reshard {

template <class T>
struct Integer {
    using Number = T;
    T value;
    static constexpr bool is_ordered = true;
    static constexpr bool is_scaled = false;
    static Integer lowest() { return {std::numeric_limits<T>::min()}; }
    static Integer highest() { return {std::numeric_limits<T>::max()}; }
    static Integer one() { return {1}; }
    RESHARD_ON_DEVICE static T number(Integer a) { return a.value; }
    RESHARD_ON_DEVICE static Integer of(T value) { return {value}; }
    RESHARD_ON_DEVICE static Integer sum(Integer a, Integer b) { return {static_cast<T>(wide(a) + wide(b))}; }
    RESHARD_ON_DEVICE static Integer prod(Integer a, Integer b) { return {static_cast<T>(wide(a) * wide(b))}; }
    RESHARD_ON_DEVICE static Integer max(Integer a, Integer b) { return b.value > a.value ? b : a; }
    RESHARD_ON_DEVICE static Integer min(Integer a, Integer b) { return b.value < a.value ? b : a; }

private:
    RESHARD_ON_DEVICE static std::uint64_t wide(Integer a) { return static_cast<std::uint64_t>(a.value); }
};

struct Boolean {
    using Number = std::uint8_t;
    std::uint8_t value;
    static constexpr bool is_ordered = true;
    static constexpr bool is_scaled = false;
    static Boolean lowest() { return {0}; }
    static Boolean highest() { return {1}; }
    static Boolean one() { return {1}; }
    static std::uint8_t number(Boolean a) { return a.value; }
    static Boolean of(std::uint8_t value) { return {value}; }
    RESHARD_ON_DEVICE static Boolean sum(Boolean a, Boolean b) {
        return {static_cast<std::uint8_t>((a.value | b.value) != 0)};
    }
    RESHARD_ON_DEVICE static Boolean prod(Boolean a, Boolean b) {
        return {static_cast<std::uint8_t>(a.value != 0 && b.value != 0)};
    }
    RESHARD_ON_DEVICE static Boolean max(Boolean a, Boolean b) { return sum(a, b); }
    RESHARD_ON_DEVICE static Boolean min(Boolean a, Boolean b) { return prod(a, b); }
};

// The memory of a float: its bits, and the number type that it computes in.
template <class T>
struct Whole {
    using Number = T;
    T bits;
    RESHARD_ON_DEVICE static T number(Whole a) { return a.bits; }
    RESHARD_ON_DEVICE static Whole of(T value) { return {value}; }
};

struct Brain {
    using Number = float;
    std::uint16_t bits;
    RESHARD_ON_DEVICE static float number(Brain a) { return from_bfloat16(a.bits); }
    RESHARD_ON_DEVICE static Brain of(float value) { return {to_bfloat16(value)}; }
};

struct Half {
    using Number = float;
    std::uint16_t bits;
    RESHARD_ON_DEVICE static float number(Half a) { return from_half(a.bits); }
    RESHARD_ON_DEVICE static Half of(float value) { return {to_half(value)}; }
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
    RESHARD_ON_DEVICE static Floating sum(Floating a, Floating b) { return of(number(a) + number(b)); }
    RESHARD_ON_DEVICE static Floating prod(Floating a, Floating b) { return of(number(a) * number(b)); }
    RESHARD_ON_DEVICE static Floating max(Floating a, Floating b) { return first(a, b, number(a) > number(b), false); }
    RESHARD_ON_DEVICE static Floating min(Floating a, Floating b) { return first(a, b, number(a) < number(b), true); }
    RESHARD_ON_DEVICE static Floating scaled(Floating a, std::int64_t times, std::int64_t over) {
        return of(number(a) * static_cast<Number>(times) / static_cast<Number>(over));
    }
    RESHARD_ON_DEVICE static Number number(Floating a) { return Held::number(a.held); }
    RESHARD_ON_DEVICE static Floating of(Number value) { return {Held::of(value)}; }

private:
    RESHARD_ON_DEVICE static bool is_negative(Number x) {
        if constexpr (sizeof(Number) == 4) return (bits_as<std::uint32_t>(x) >> 31) != 0;
        if constexpr (sizeof(Number) == 8) return (bits_as<std::uint64_t>(x) >> 63) != 0;
    }
    RESHARD_ON_DEVICE static Floating first(Floating a, Floating b, bool a_leads, bool negative) {
        const Number x = number(a);
        const Number y = number(b);
        if (x == y) return is_negative(x) == negative ? a : b;
        return a_leads || x != x ? a : b;  // if b is NaN, a does not lead
    }
};

template <class T>
struct Complex {
    using Number = T;
    T real;
    T imaginary;
    static constexpr bool is_ordered = false;
    static constexpr bool is_scaled = true;
    static Complex one() { return {1, 0}; }
    RESHARD_ON_DEVICE static Complex sum(Complex a, Complex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
    RESHARD_ON_DEVICE static Complex prod(Complex a, Complex b) {
        return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
    }
    RESHARD_ON_DEVICE static Complex scaled(Complex a, std::int64_t times, std::int64_t over) {
        const auto up = static_cast<T>(times);
        const auto down = static_cast<T>(over);
        return {a.real * up / down, a.imaginary * up / down};
    }
};

// X(dtype, element type, ...) for each type that can be reduced; the rest are the other columns of the table.
#define RESHARD_NO_ELEMENT(...)
#define RESHARD_ELEMENTS(X) RESHARD_DTYPES(X, RESHARD_NO_ELEMENT)

}  // namespace reshard
