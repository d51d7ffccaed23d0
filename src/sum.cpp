// Sums of elements, the one reduction: how each dtype adds.
#include <bit>
#include <cmath>
#include <cstring>

#include "copy.hpp"

namespace reshard {
namespace {

using Loop = LoopNest::Loop;

// Each element type is a struct with the bits it has in memory and a sum. Integers are unsigned: wrapping is defined.
template <class T>
struct Plain {
    T value;
    friend Plain operator+(Plain a, Plain b) { return {static_cast<T>(a.value + b.value)}; }
};

struct Boolean {
    std::uint8_t value;
    friend Boolean operator+(Boolean a, Boolean b) { return {static_cast<std::uint8_t>((a.value | b.value) != 0)}; }
};

template <class T>
struct Complex {
    T real;
    T imaginary;
    friend Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
};

// Adding half the last kept bit, less one when that bit is even, rounds to nearest even; NaN must not round to
// infinity.
std::uint16_t to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

struct BFloat16 {
    std::uint16_t bits;
    [[nodiscard]] float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
    friend BFloat16 operator+(BFloat16 a, BFloat16 b) { return {to_bfloat16(a.value() + b.value())}; }
};

// IEEE binary16 without compiler support for it. The scalings by powers of two are exact, so the hardware's own
// rounding of a float does the rounding of subnormals.
float from_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    if ((half & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x7fffffu));
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

std::uint16_t to_half(float value) {
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

struct Half {
    std::uint16_t bits;
    friend Half operator+(Half a, Half b) { return {to_half(from_half(a.bits) + from_half(b.bits))}; }
};

template <class T>
void add_one(const std::byte* source, std::byte* target) {
    T from;
    T to;
    std::memcpy(&from, source, sizeof from);
    std::memcpy(&to, target, sizeof to);
    to = to + from;
    std::memcpy(target, &to, sizeof to);
}

// The dense case apart from the strided one: with a constant stride the compiler turns the loop into vector additions.
template <class T>
void add_line(const Loop& loop, const std::byte* source, std::byte* target) {
    constexpr auto bytes = static_cast<Index>(sizeof(T));
    if (loop.source_stride == bytes && loop.target_stride == bytes) {
        for (Index i = 0; i < loop.extent; ++i) add_one<T>(source + i * bytes, target + i * bytes);
    } else {
        for (Index i = 0; i < loop.extent; ++i) {
            add_one<T>(source + i * loop.source_stride, target + i * loop.target_stride);
        }
    }
}

using AddLine = void (*)(const Loop&, const std::byte*, std::byte*);

AddLine add_line_of(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return add_line<Boolean>;
        case DType::i8:
        case DType::u8:
            return add_line<Plain<std::uint8_t>>;
        case DType::i16:
        case DType::u16:
            return add_line<Plain<std::uint16_t>>;
        case DType::i32:
        case DType::u32:
            return add_line<Plain<std::uint32_t>>;
        case DType::i64:
        case DType::u64:
            return add_line<Plain<std::uint64_t>>;
        case DType::f16:
            return add_line<Half>;
        case DType::bf16:
            return add_line<BFloat16>;
        case DType::f32:
            return add_line<Plain<float>>;
        case DType::f64:
            return add_line<Plain<double>>;
        case DType::c64:
            return add_line<Complex<float>>;
        case DType::c128:
            return add_line<Complex<double>>;
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            break;
    }
    return nullptr;  // bytes only; the callers' precondition keeps them out
}

}  // namespace

BoxSum::BoxSum(DType dtype, const Region& source, const Region& target)
    : dtype_(dtype), nest_(loop_nest(source, target)) {
    if (nest_.loops.empty()) nest_.loops.push_back({1, nest_.element_bytes, nest_.element_bytes});
}

void BoxSum::run(const std::byte* source, std::byte* target) const {
    if (nest_.empty) return;
    const std::span<const Loop> loops = nest_.loops;
    const Loop inner = loops.back();
    const AddLine line = add_line_of(dtype_);
    for_each(loops.first(loops.size() - 1), source + nest_.source_offset, target + nest_.target_offset,
             [&](const std::byte* from, std::byte* to) { line(inner, from, to); });
}

void add_dense(DType dtype, const std::byte* source, std::byte* target, Index elements) {
    const Index bytes = size_of(dtype);
    add_line_of(dtype)({elements, bytes, bytes}, source, target);
}

}  // namespace reshard
