#include "files/base/cast.hpp"

#include <cmath>

#include "src/copy/elements.hpp"

namespace reshard::files {
namespace {

// A float of 8 bits: sign, exponent, `mantissa` bits. If `finite`, all bits set mean NaN, and infinity does not exist.
template <int mantissa, int bias, bool finite>
float from_f8(std::uint8_t bits) {
    constexpr int exponent_max = (1 << (7 - mantissa)) - 1;
    const int exponent = (bits & 0x7f) >> mantissa;
    const int fraction = bits & ((1 << mantissa) - 1);
    const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
    if (finite && (bits & 0x7f) == 0x7f) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
    if (!finite && exponent == exponent_max)
        return std::copysign(
            fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN(), sign);
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
    return sign * std::ldexp(static_cast<float>(fraction + (1 << mantissa)), exponent - bias - mantissa);
}

template <int mantissa, int bias, bool finite>
std::uint8_t to_f8(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    constexpr std::uint8_t nan = finite ? 0x7f : static_cast<std::uint8_t>(0x7f & ~((1 << (mantissa - 1)) - 1));
    constexpr std::uint8_t infinity = static_cast<std::uint8_t>(((1 << (7 - mantissa)) - 1) << mantissa);
    if (magnitude > 0x7f800000U) return sign | nan;
    constexpr int dropped = 23 - mantissa;
    std::uint32_t rounded = 0;
    if (magnitude < static_cast<std::uint32_t>(127 - bias + 1) << 23) {
        // Subnormal there: one unit of the added number's last place is one unit of the result's.
        const float unit = std::ldexp(1.0F, 1 - bias - mantissa + 23);
        rounded = bits_as<std::uint32_t>(bits_as<float>(magnitude) + unit) - bits_as<std::uint32_t>(unit);
    } else {
        const std::uint32_t up = magnitude + (1U << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1U);
        rounded = (up - (static_cast<std::uint32_t>(127 - bias) << 23)) >> dropped;
    }
    constexpr std::uint32_t most = finite ? 0x7e : infinity - 1;
    if (rounded > most) return sign | (finite ? nan : infinity);
    return sign | static_cast<std::uint8_t>(rounded);
}

// Held<dtype>: the bits, and their way from and to a float.
template <class Bits, float (*read)(Bits), Bits (*write)(float)>
struct Held {
    using Type = Bits;
    static float from(Bits bits) { return read(bits); }
    static Bits to(float value) { return write(value); }
};

float same(std::uint32_t bits) { return bits_as<float>(bits); }
std::uint32_t same_bits(float value) { return bits_as<std::uint32_t>(value); }

// visit(Held{}) of the type; false for types that are not cast.
template <class Visit>
bool with_float(DType dtype, const Visit& visit) {
    if (dtype == DType::f32) return visit(Held<std::uint32_t, same, same_bits>{}), true;
    if (dtype == DType::bf16) return visit(Held<std::uint16_t, from_bfloat16, to_bfloat16>{}), true;
    if (dtype == DType::f16) return visit(Held<std::uint16_t, from_half, to_half>{}), true;
    if (dtype == DType::f8_e4m3fn) return visit(Held<std::uint8_t, from_f8<3, 7, true>, to_f8<3, 7, true>>{}), true;
    if (dtype == DType::f8_e5m2) return visit(Held<std::uint8_t, from_f8<2, 15, false>, to_f8<2, 15, false>>{}), true;
    return false;
}

template <class From, class To>
void cast_line(const LoopNest::Loop& loop, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < loop.extent; ++i) {
        typename From::Type bits;
        std::memcpy(&bits, source + i * loop.source_stride, sizeof bits);
        const typename To::Type cast = To::to(From::from(bits));
        std::memcpy(target + i * loop.target_stride, &cast, sizeof cast);
    }
}

}  // namespace

bool can_cast(DType from, DType to) {
    const auto nothing = [](auto) {};
    return from != to && with_float(from, nothing) && with_float(to, nothing);
}

void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes) {
    std::vector<LoopNest::Loop> loops;
    for (std::size_t k = 0; k < source.extents.size(); ++k) {
        if (source.extents[k] == 0) return;
        loops.push_back({source.extents[k], source.strides_bytes[k], target.strides_bytes[k]});
    }
    LoopNest::Loop line{1, 0, 0};
    if (!loops.empty()) {
        line = loops.back();
        loops.pop_back();
    }
    (void)with_float(from, [&]<class From>(From) {
        (void)with_float(to, [&]<class To>(To) {
            for_each(loops, source_bytes + source.offset_bytes, target_bytes + target.offset_bytes,
                     [&](const std::byte* at, std::byte* into) { cast_line<From, To>(line, at, into); });
        });
    });
}

}  // namespace reshard::files
