#include "tool/data/exact_values.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace reshard::cli {
namespace {

template <class T>
void put(T value, std::span<std::byte> element) {
    std::memcpy(element.data(), &value, sizeof(T));
}

template <class T>
T get(std::span<const std::byte> element) {
    T value;
    std::memcpy(&value, element.data(), sizeof(T));
    return value;
}

// For whole numbers up to 2048 only: the leading bit is hidden, the rest fills the 10 bits from the left.
std::uint16_t half_of(Index value) {
    if (value == 0) return 0;
    const auto exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - 1;
    const auto rest = static_cast<std::uint64_t>(value) - (std::uint64_t{1} << exponent);
    const std::uint64_t mantissa = exponent <= 10 ? rest << (10 - exponent) : rest >> (exponent - 10);
    return static_cast<std::uint16_t>(static_cast<std::uint64_t>(exponent + 15) << 10 | mantissa);
}

double of_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const int mantissa = bits & 0x3ff;
    const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    return exponent == 0x1f ? NAN : (bits & 0x8000) != 0 ? -size : size;
}

std::uint16_t brain_of(Index value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

double of_brain(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

Index whole(double value) {
    return std::abs(value) < 1e15 && value == std::floor(value) ? static_cast<Index>(value) : Index{-1};
}

}  // namespace

Index exact_max(DType dtype) {
    switch (dtype) {
        case DType::boolean:
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            return 1;
        case DType::i8:
        case DType::u8:
            return 127;
        case DType::bf16:
            return 256;
        case DType::f16:
            return 2048;
        default:
            return 32767;
    }
}

void encode(DType dtype, Index value, std::span<std::byte> element) {
    switch (dtype) {
        case DType::f32:
            return put(static_cast<float>(value), element);
        case DType::c64:
            put(static_cast<float>(value), element.subspan(4));
            return put(static_cast<float>(value), element);
        case DType::f16:
            return put(half_of(value), element);
        case DType::bf16:
            return put(brain_of(value), element);
        case DType::f64:
            return put(static_cast<double>(value), element);
        case DType::c128:
            put(static_cast<double>(value), element.subspan(8));
            return put(static_cast<double>(value), element);
        default:
            std::memcpy(element.data(), &value, element.size());
    }
}

Index decode(DType dtype, std::span<const std::byte> element) {
    switch (dtype) {
        case DType::f16:
            return whole(of_half(get<std::uint16_t>(element)));
        case DType::bf16:
            return whole(of_brain(get<std::uint16_t>(element)));
        case DType::f32:
            return whole(get<float>(element));
        case DType::f64:
            return whole(get<double>(element));
        case DType::c64: {
            const Index real = whole(get<float>(element));
            return real == whole(get<float>(element.subspan(4))) ? real : -1;
        }
        case DType::c128: {
            const Index real = whole(get<double>(element));
            return real == whole(get<double>(element.subspan(8))) ? real : -1;
        }
        default: {
            Index value = 0;
            std::memcpy(&value, element.data(), element.size());
            return value;
        }
    }
}

}  // namespace reshard::cli
