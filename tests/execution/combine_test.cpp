// How each element type combines, compared with references that compute in another way.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "src/copy/copy.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {
namespace {

template <class T>
T combined(DType dtype, Combine combine, T a, T b) {
    combine_dense(dtype, combine, reinterpret_cast<const std::byte*>(&b), reinterpret_cast<std::byte*>(&a), 1);
    return a;
}

template <class T>
T sum_of(DType dtype, T a, T b) {
    return combined(dtype, Combine::sum, a, b);
}

template <class T>
void expect_wrapping(DType dtype) {
    constexpr T most = std::numeric_limits<T>::max();
    EXPECT_EQ(sum_of<T>(dtype, most, 1), std::numeric_limits<T>::min());
    EXPECT_EQ(sum_of<T>(dtype, most, most), static_cast<T>(~T{1}));
    EXPECT_EQ(sum_of<T>(dtype, 20, 22), 42);
}

TEST(Sum, IntegersWrap) {
    expect_wrapping<std::int8_t>(DType::i8);
    expect_wrapping<std::int16_t>(DType::i16);
    expect_wrapping<std::int32_t>(DType::i32);
    expect_wrapping<std::int64_t>(DType::i64);
    expect_wrapping<std::uint8_t>(DType::u8);
    expect_wrapping<std::uint16_t>(DType::u16);
    expect_wrapping<std::uint32_t>(DType::u32);
    expect_wrapping<std::uint64_t>(DType::u64);
}

TEST(Sum, FloatsAndComplexNumbers) {
    EXPECT_EQ(sum_of(DType::f32, 0.1F, 0.2F), 0.1F + 0.2F);
    EXPECT_EQ(sum_of(DType::f64, 0.1, 0.2), 0.1 + 0.2);
    using Single = std::complex<float>;
    using Double = std::complex<double>;
    EXPECT_EQ(sum_of(DType::c64, Single(1, 2), Single(3, 5)), Single(4, 7));
    EXPECT_EQ(sum_of(DType::c128, Double(1, 2), Double(3, 5)), Double(4, 7));
}

TEST(Sum, BooleansAreTrueWhenOneIs) {
    EXPECT_EQ(sum_of<std::uint8_t>(DType::boolean, 0, 0), 0);
    EXPECT_EQ(sum_of<std::uint8_t>(DType::boolean, 1, 0), 1);
    EXPECT_EQ(sum_of<std::uint8_t>(DType::boolean, 1, 1), 1);
    EXPECT_EQ(sum_of<std::uint8_t>(DType::boolean, 0, 8), 1);
}

// A small float format, by its definition: sign, exponent, mantissa.
struct Format {
    DType dtype;
    int mantissa_bits;
    int bias;
    int exponent_max;  // all ones: infinities and NaNs
};
constexpr Format half{DType::f16, 10, 15, 31};
constexpr Format brain{DType::bf16, 7, 127, 255};

double value_of_bits(const Format& format, unsigned bits) {
    const int exponent = static_cast<int>(bits >> format.mantissa_bits) & format.exponent_max;
    const unsigned mantissa = bits & ((1u << format.mantissa_bits) - 1);
    const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    if (exponent == format.exponent_max) return mantissa != 0 ? std::nan("") : sign * INFINITY;
    const double whole = exponent == 0 ? mantissa : mantissa + (1u << format.mantissa_bits);
    return sign * std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

// The nearest value of the format, with ties to even, by bisection over all magnitudes.
unsigned nearest_bits(const Format& format, double value) {
    const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
    const double magnitude = std::fabs(value);
    unsigned low = 0;
    unsigned high = static_cast<unsigned>(format.exponent_max) << format.mantissa_bits;  // infinity
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        (value_of_bits(format, middle) <= magnitude ? low : high) = middle;
    }
    // Infinity stands for the next power of two.
    const double above = std::isinf(value_of_bits(format, high))
                             ? 2 * value_of_bits(format, high - 1) - value_of_bits(format, high - 2)
                             : value_of_bits(format, high);
    const double to_low = magnitude - value_of_bits(format, low);
    const double to_high = above - magnitude;
    const bool up = to_high < to_low || (to_high == to_low && low % 2 == 1);
    return sign | (up ? high : low);
}

void expect_sum(const Format& format, std::uint16_t a, std::uint16_t b) {
    const double wanted = value_of_bits(format, a) + value_of_bits(format, b);
    const std::uint16_t got = sum_of(format.dtype, a, b);
    if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(value_of_bits(format, got))) << a << " + " << b;
    } else if (std::isinf(wanted) || wanted == 0) {
        EXPECT_EQ(value_of_bits(format, got), wanted) << a << " + " << b;
    } else {
        EXPECT_EQ(got, nearest_bits(format, wanted)) << a << " + " << b;
    }
}

// bfloat16 spans more exponents than a double has bits. Sums of values far apart are not exact in the reference.
bool reference_is_exact(const Format& format, unsigned a, unsigned b) {
    const auto exponent = [&](unsigned bits) {
        return static_cast<int>(bits >> format.mantissa_bits) & format.exponent_max;
    };
    return std::abs(exponent(a) - exponent(b)) < 40;
}

TEST(Sum, SmallFloatsRoundToNearestEven) {
    std::mt19937_64 random(1);
    for (const Format& format : {half, brain}) {
        for (unsigned bits = 0; bits < 0x10000u; ++bits) {
            expect_sum(format, static_cast<std::uint16_t>(bits), 0);
            expect_sum(format, static_cast<std::uint16_t>(bits), static_cast<std::uint16_t>(bits));
        }
        for (int i = 0; i < 300000; ++i) {
            const auto a = static_cast<std::uint16_t>(random());
            // The values are mostly close together, where rounding and cancellation happen.
            const auto b = static_cast<std::uint16_t>(i % 2 == 0 ? random() : a ^ (random() & 0x9fffu));
            if (reference_is_exact(format, a, b)) expect_sum(format, a, b);
        }
    }
}

TEST(Sum, ManyElementsAtOnce) {
    std::vector<float> a(1001);
    std::vector<float> b(1001);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(i);
        b[i] = 0.5F;
    }
    combine_dense(DType::f32, Combine::sum, reinterpret_cast<const std::byte*>(a.data()),
                  reinterpret_cast<std::byte*>(b.data()), 1001);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[i], static_cast<float>(i) + 0.5F);
}

template <class T>
void expect_integers(DType dtype) {
    constexpr T low = std::numeric_limits<T>::min();
    constexpr T high = std::numeric_limits<T>::max();
    for (const T value : {low, static_cast<T>(low + 1), T{0}, T{1}, T{5}, high}) {
        EXPECT_EQ(combined<T>(dtype, Combine::max, value, low), value);
        EXPECT_EQ(combined<T>(dtype, Combine::min, high, value), value);
        EXPECT_EQ(combined<T>(dtype, Combine::max, high, value), high);
        EXPECT_EQ(combined<T>(dtype, Combine::prod, value, 1), value);
    }
    EXPECT_EQ(combined<T>(dtype, Combine::prod, high, 2), static_cast<T>(high * std::uint64_t{2}));
}

TEST(Combine, IntegersKeepTheirSign) {
    expect_integers<std::int8_t>(DType::i8);
    expect_integers<std::int16_t>(DType::i16);
    expect_integers<std::int32_t>(DType::i32);
    expect_integers<std::int64_t>(DType::i64);
    expect_integers<std::uint8_t>(DType::u8);
    expect_integers<std::uint16_t>(DType::u16);
    expect_integers<std::uint32_t>(DType::u32);
    expect_integers<std::uint64_t>(DType::u64);
}

TEST(Combine, BooleansAreOrAndAnd) {
    for (const std::uint8_t a : {0, 1})
        for (const std::uint8_t b : {0, 1}) {
            EXPECT_EQ(combined(DType::boolean, Combine::max, a, b), a | b);
            EXPECT_EQ(combined(DType::boolean, Combine::min, a, b), a & b);
            EXPECT_EQ(combined(DType::boolean, Combine::prod, a, b), a & b);
        }
}

TEST(Combine, MaxAndMinOfFloatsDoNotDependOnOrder) {
    const float nan = std::nanf("");
    const std::vector<float> values = {-INFINITY, -1.5F, -0.0F, 0.0F, 2.0F, INFINITY, nan};
    for (const float a : values)
        for (const float b : values)
            for (const Combine combine : {Combine::max, Combine::min}) {
                const float ab = combined(DType::f32, combine, a, b);
                const float ba = combined(DType::f32, combine, b, a);
                EXPECT_EQ(std::isnan(ab), std::isnan(a) || std::isnan(b));
                if (std::isnan(ab)) continue;
                EXPECT_EQ(std::bit_cast<std::uint32_t>(ab), std::bit_cast<std::uint32_t>(ba)) << a << " " << b;
                EXPECT_EQ(ab, combine == Combine::max ? std::max(a, b) : std::min(a, b));
                if (a != 0 || b != 0) continue;
                const bool negative =
                    combine == Combine::max ? std::signbit(a) && std::signbit(b) : std::signbit(a) || std::signbit(b);
                EXPECT_EQ(std::signbit(ab), negative);
            }
}

TEST(Combine, ComplexNumbersMultiply) {
    using Single = std::complex<float>;
    using Double = std::complex<double>;
    EXPECT_EQ(combined(DType::c64, Combine::prod, Single(1, 2), Single(3, 5)), Single(-7, 11));
    EXPECT_EQ(combined(DType::c128, Combine::prod, Double(1, 2), Double(3, 5)), Double(-7, 11));
}

TEST(Combine, SmallFloatsMultiplyAndCompareByValue) {
    std::mt19937_64 random(2);
    for (const Format& format : {half, brain}) {
        for (int i = 0; i < 100000; ++i) {
            const auto a = static_cast<std::uint16_t>(random());
            const auto b = static_cast<std::uint16_t>(random());
            const double x = value_of_bits(format, a);
            const double y = value_of_bits(format, b);
            if (std::isnan(x) || std::isnan(y)) continue;
            EXPECT_EQ(value_of_bits(format, combined(format.dtype, Combine::max, a, b)), std::max(x, y));
            EXPECT_EQ(value_of_bits(format, combined(format.dtype, Combine::min, a, b)), std::min(x, y));
            // Products of bfloat16 may leave the range of float. Products of halves are exact in a double and in a
            // float.
            const double product = x * y;
            if (std::isnan(product) || std::fabs(product) > 60000 || std::fabs(product) < 1e-4) continue;
            EXPECT_EQ(combined(format.dtype, Combine::prod, a, b), nearest_bits(format, product)) << a << " * " << b;
        }
    }
}

// An identity leaves every bit of every element unchanged, except -0 in a sum.
TEST(Combine, IdentitiesLeaveElementsAlone) {
    std::mt19937_64 random(3);
    for (int type = 0; type < std::ssize(tables::dtypes); ++type) {
        const auto dtype = static_cast<DType>(type);
        for (const Reduction reduction : all_reductions) {
            if (!can_reduce(dtype, reduction)) continue;
            const Combine combine = combine_of(reduction);
            const Pattern identity = identity_of(dtype, combine);
            for (const std::uint8_t value : {0x00, 0x01, 0x35}) {  // small positive numbers of every type
                Pattern element{};
                element[0] = static_cast<std::byte>(dtype == DType::boolean ? value & 1 : value);
                Pattern result = element;
                combine_dense(dtype, combine, identity.data(), result.data(), 1);
                EXPECT_EQ(result, element) << name(dtype) << " " << name(reduction);
                result = identity;
                combine_dense(dtype, combine, element.data(), result.data(), 1);
                EXPECT_EQ(std::memcmp(result.data(), element.data(), static_cast<std::size_t>(size_of(dtype))), 0)
                    << name(dtype) << " " << name(reduction);
            }
        }
    }
}

TEST(Combine, ScalesMultiplyThenDivide) {
    const auto scaled = [](DType dtype, auto value, Scale scale) {
        BoxScale(dtype, scale, {0, size_of(dtype), {}, {}}).run(reinterpret_cast<std::byte*>(&value));
        return value;
    };
    EXPECT_EQ(scaled(DType::f32, 10.0F, {1, 4}), 2.5F);
    EXPECT_EQ(scaled(DType::f64, 10.0, {3, 1}), 30.0);
    EXPECT_EQ(scaled(DType::f64, 1.0, {1, 3}), 1.0 / 3.0);
    EXPECT_EQ(scaled(DType::c64, std::complex<float>(6, -3), {1, 3}), std::complex<float>(2, -1));
    EXPECT_EQ(scaled(DType::f16, std::uint16_t{0x4900}, {1, 4}), 0x4100);  // 10 / 4 = 2.5
    EXPECT_EQ(scaled(DType::bf16, std::uint16_t{0x4120}, {1, 4}), 0x4020);
}

TEST(Combine, WhatHasNoMeaningIsRefused) {
    EXPECT_EQ(can_reduce(DType::c64, Reduction::max).error().code, Code::unsupported);
    EXPECT_EQ(can_reduce(DType::i32, Reduction::avg).error().code, Code::unsupported);
    EXPECT_EQ(can_reduce(DType::boolean, Reduction::avg).error().code, Code::unsupported);
    EXPECT_EQ(can_reduce(DType::f8_e5m2, Reduction::sum).error().code, Code::unsupported);
    EXPECT_TRUE(can_reduce(DType::c128, Reduction::avg));
}

}  // namespace
}  // namespace reshard
