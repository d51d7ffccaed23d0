#include "tool/data/exact_values.hpp"

#include <cmath>
#include <cstring>

#include "src/copy/elements.hpp"

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
            return put(to_half(static_cast<float>(value)), element);
        case DType::bf16:
            return put(to_bfloat16(static_cast<float>(value)), element);
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
            return whole(from_half(get<std::uint16_t>(element)));
        case DType::bf16:
            return whole(from_bfloat16(get<std::uint16_t>(element)));
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
