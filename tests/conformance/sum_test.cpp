// How each element type adds, against references that compute in another way.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "src/copy.hpp"

namespace reshard {
namespace {

template <class T>
T sum_of(DType dtype, T a, T b) {
    add_dense(dtype, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<std::byte*>(&b), 1);
    return b;
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

// A small float format from its definition: sign, exponent, mantissa.
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

// The nearest value of the format, even on a tie, by bisection over all of its magnitudes.
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

// bfloat16 spans more exponents than a double has bits: sums of far apart values are not exact in the reference.
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
            // Mostly near each other, where roundings and cancellations are.
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
    add_dense(DType::f32, reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data()), 1001);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[i], static_cast<float>(i) + 0.5F);
}

}  // namespace
}  // namespace reshard
