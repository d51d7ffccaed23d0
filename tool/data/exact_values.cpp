#include "tool/data/exact_values.hpp"

#include <cmath>
#include <cstring>

#include "src/copy/element_type.hpp"

namespace reshard::cli {
namespace {

Index whole(double value) {
    return std::abs(value) < 1e15 && value == std::floor(value) ? static_cast<Index>(value) : Index{-1};
}

}  // namespace

Index exact_max(DType dtype) {
    constexpr Index enough = 32767;  // larger numbers are not needed
    const tables::DTypeRow& row = tables::row(dtype);
    if (!row.combines || row.kind == tables::Kind::boolean) return 1;
    if (row.kind == tables::Kind::complex) return enough;
    if (row.kind == tables::Kind::floating) return row.mantissa < 14 ? Index{2} << row.mantissa : enough;
    return row.bytes == 1 ? 127 : enough;
}

void encode(DType dtype, Index value, std::span<std::byte> element) {
    with_element_type(dtype, [&]<class E>(E made) {
        const auto number = static_cast<typename E::Number>(value);
        if constexpr (has_parts<E>) {
            made = {number, number};
        } else {
            made = E::of(number);
        }
        std::memcpy(element.data(), &made, sizeof made);
    });
}

Index decode(DType dtype, std::span<const std::byte> element) {
    return with_element_type(dtype, [&]<class E>(E held) {
        std::memcpy(&held, element.data(), sizeof held);
        if constexpr (has_parts<E>) {
            const Index value = whole(held.real);
            return value == whole(held.imaginary) ? value : Index{-1};
        } else if constexpr (std::is_integral_v<typename E::Number>) {
            return static_cast<Index>(E::number(held));
        } else {
            return whole(E::number(held));
        }
    });
}

}  // namespace reshard::cli
