#include "reference.hpp"

#include <bit>
#include <stdexcept>

namespace reshard::conformance {

namespace {

bool is_signed(DType dtype) {
    return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

bool is_unsigned(DType dtype) {
    return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
}

}  // namespace

bool is_float(DType dtype) {
    switch (dtype) {
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
        case DType::f16:
        case DType::bf16:
        case DType::f32:
        case DType::f64:
            return true;
        default:
            return false;
    }
}

Format format_of(DType dtype) {
    switch (dtype) {
        case DType::f8_e4m3fn:
            return {4, 3, false};
        case DType::f8_e5m2:
            return {5, 2};
        case DType::f16:
            return {5, 10};
        case DType::bf16:
            return {8, 7};
        case DType::f32:
            return {8, 23};
        case DType::f64:
            return {11, 52};
        default:
            throw std::invalid_argument("no float");
    }
}

Number whole(Index value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return {Number::Kind::finite, value < 0, value < 0 ? 0 - bits : bits, 0};
}

Number decode(DType dtype, std::uint64_t bits) {
    const int size = static_cast<int>(8 * size_of(dtype));
    if (is_unsigned(dtype)) return {Number::Kind::finite, false, bits, 0};
    if (is_signed(dtype)) return whole(static_cast<Index>(bits << (64 - size)) >> (64 - size));
    const Format format = format_of(dtype);
    const bool negative = (bits >> (size - 1) & 1) != 0;
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
    const std::uint64_t highest = (std::uint64_t{1} << format.exponent_bits) - 1;
    const std::uint64_t field = bits >> format.mantissa_bits & highest;
    const bool full = fraction == (std::uint64_t{1} << format.mantissa_bits) - 1;
    if (field == highest && format.has_infinity)
        return {fraction == 0 ? Number::Kind::infinite : Number::Kind::nan, negative};
    if (field == highest && full) return {Number::Kind::nan, negative};
    const int unit = 1 - format.bias() - format.mantissa_bits;
    if (field == 0) return {Number::Kind::finite, negative, fraction, unit};
    return {Number::Kind::finite, negative, fraction | std::uint64_t{1} << format.mantissa_bits,
            unit + static_cast<int>(field) - 1};
}

std::optional<std::uint64_t> encode(DType dtype, const Number& number) {
    const int size = static_cast<int>(8 * size_of(dtype));
    const std::uint64_t all = size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    if (!is_float(dtype)) return (number.negative ? 0 - number.mantissa : number.mantissa) & all;
    const Format format = format_of(dtype);
    const std::uint64_t sign = number.negative ? std::uint64_t{1} << (size - 1) : 0;
    const std::uint64_t highest = (std::uint64_t{1} << format.exponent_bits) - 1;
    const std::uint64_t infinity = sign | highest << format.mantissa_bits;
    if (number.kind == Number::Kind::nan) return std::nullopt;
    const auto too_large = [&]() -> std::optional<std::uint64_t> {
        return format.has_infinity ? std::optional(infinity) : std::nullopt;
    };
    if (number.kind == Number::Kind::infinite) return too_large();
    if (number.mantissa == 0) return sign;
    // The unit of the last kept bit.
    const int length = 64 - std::countl_zero(number.mantissa);
    const int least = 1 - format.bias() - format.mantissa_bits;
    int unit = std::max(number.exponent + length - (format.mantissa_bits + 1), least);
    const int dropped = unit - number.exponent;
    std::uint64_t kept = 0;
    if (dropped <= 0) {
        kept = number.mantissa << -dropped;
    } else if (dropped <= length) {
        kept = dropped == 64 ? 0 : number.mantissa >> dropped;
        const std::uint64_t rest =
            dropped == 64 ? number.mantissa : number.mantissa & ((std::uint64_t{1} << dropped) - 1);
        const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
        if (rest > half || (rest == half && kept % 2 == 1)) ++kept;
    }
    if (kept >> (format.mantissa_bits + 1) != 0) {
        kept >>= 1;
        ++unit;
    }
    const bool normal = kept >> format.mantissa_bits != 0;
    const std::uint64_t field = normal ? static_cast<std::uint64_t>(unit - least + 1) : 0;
    const std::uint64_t fraction = kept & ((std::uint64_t{1} << format.mantissa_bits) - 1);
    const bool is_nan =
        !format.has_infinity && field == highest && fraction == (std::uint64_t{1} << format.mantissa_bits) - 1;
    if (field > highest || (field == highest && format.has_infinity) || is_nan) return too_large();
    return sign | field << format.mantissa_bits | fraction;
}

bool includes(DType wide, DType narrow) {
    if (is_float(wide) != is_float(narrow)) return false;
    if (is_float(wide)) {
        const Format large = format_of(wide);
        const Format small = format_of(narrow);
        return large.exponent_bits >= small.exponent_bits && large.mantissa_bits >= small.mantissa_bits;
    }
    const auto values = [](DType dtype) { return static_cast<int>(8 * size_of(dtype)) - (is_signed(dtype) ? 1 : 0); };
    if (is_signed(narrow) && is_unsigned(wide)) return false;
    return values(wide) >= values(narrow);
}

bool may_cast(DType from, DType to, bool summed) {
    if (is_float(from) != is_float(to)) return false;
    if (!is_float(from)) return includes(to, from);
    return !summed || includes(to, from) || includes(from, to);
}

}  // namespace reshard::conformance
