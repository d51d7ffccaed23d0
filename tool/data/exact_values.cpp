#include "tool/data/exact_values.hpp"

#include <cmath>
#include <cstring>
#include <functional>

#include "src/copy/elements.hpp"

namespace reshard::cli {
namespace {

Index whole(double value) {
    return std::abs(value) < 1e15 && value == std::floor(value) ? static_cast<Index>(value) : Index{-1};
}

// Returns the value of both parts of a complex number, or of the one part of other numbers. Returns -1 if the parts
// differ.
template <class T, class Number>
Index decoded(std::span<const std::byte> element, Number number) {
    T part;
    std::memcpy(&part, element.data(), sizeof part);
    const Index value = whole(number(part));
    if (element.size() == sizeof part) return value;
    std::memcpy(&part, &element[sizeof part], sizeof part);
    return value == whole(number(part)) ? value : -1;
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
    const auto put = [&](auto number) {
        for (std::size_t at = 0; at < element.size(); at += sizeof number)
            std::memcpy(&element[at], &number, sizeof number);
    };
    switch (dtype) {
        case DType::f16:
            return put(to_half(static_cast<float>(value)));
        case DType::bf16:
            return put(to_bfloat16(static_cast<float>(value)));
        case DType::f32:
        case DType::c64:
            return put(static_cast<float>(value));
        case DType::f64:
        case DType::c128:
            return put(static_cast<double>(value));
        default:
            std::memcpy(element.data(), &value, element.size());
    }
}

Index decode(DType dtype, std::span<const std::byte> element) {
    switch (dtype) {
        case DType::f16:
            return decoded<std::uint16_t>(element, from_half);
        case DType::bf16:
            return decoded<std::uint16_t>(element, from_bfloat16);
        case DType::f32:
        case DType::c64:
            return decoded<float>(element, std::identity());
        case DType::f64:
        case DType::c128:
            return decoded<double>(element, std::identity());
        default: {
            Index value = 0;
            std::memcpy(&value, element.data(), element.size());
            return value;
        }
    }
}

}  // namespace reshard::cli
