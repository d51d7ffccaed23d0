#include "src/copy/cast.hpp"

#include "src/copy/element_type.hpp"

namespace reshard {
namespace {

template <class E>
inline constexpr bool is_real = !has_parts<E> && std::is_floating_point_v<typename E::Number>;
template <class E>
inline constexpr bool is_whole = !has_parts<E> && std::is_integral_v<typename E::Number> && !std::is_same_v<E, Boolean>;

// A double as a float that every narrower type rounds as it would round the double. If the float is inexact, its last
// bit is 1 (round to odd), so it is never halfway between two numbers of a narrower type.
float to_odd(double number) {
    const auto near = static_cast<float>(number);
    if (static_cast<double>(near) == number || number != number) return near;
    const std::uint32_t away = std::fabs(static_cast<double>(near)) > std::fabs(number) ? 1 : 0;
    return bits_as<float>((bits_as<std::uint32_t>(near) - away) | 1U);
}

template <class To, class Number>
To rounded(Number number) {
    using Wanted = typename To::Number;
    constexpr bool narrower_than_float = sizeof(To) < sizeof(float) && is_real<To>;
    if constexpr (std::is_same_v<Number, double> && narrower_than_float)
        return To::of(to_odd(number));
    else
        return To::of(static_cast<Wanted>(number));
}

template <class From, class To>
void cast_elements(Index count, Index source_stride, Index target_stride, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < count; ++i) {
        From element;
        std::memcpy(&element, source + i * source_stride, sizeof element);
        const To made = rounded<To>(From::number(element));
        std::memcpy(target + i * target_stride, &made, sizeof made);
    }
}

// With strides that the compiler knows, it casts several elements at once.
template <class From, class To>
void cast_line(const LoopNest::Loop& loop, const std::byte* source, std::byte* target) {
    if (loop.source_stride == sizeof(From) && loop.target_stride == sizeof(To))
        return cast_elements<From, To>(loop.extent, sizeof(From), sizeof(To), source, target);
    cast_elements<From, To>(loop.extent, loop.source_stride, loop.target_stride, source, target);
}

}  // namespace

BoxCast::BoxCast(DType from, DType to, const Region& source, const Region& target) {
    nest_ = loops_of(source, target);
    if (!nest_.loops.empty()) {
        inner_ = nest_.loops.back();
        nest_.loops.pop_back();
    }
    line_ = with_element_type(from, [&]<class From>(From) {
        return with_element_type(to, [&]<class To>(To) -> Line {
            if constexpr ((is_real<From> && is_real<To>) || (is_whole<From> && is_whole<To>))
                return cast_line<From, To>;
            else
                return nullptr;
        });
    });
}

void BoxCast::run(const std::byte* source, std::byte* target) const {
    if (nest_.empty) return;
    for_each(std::span(nest_.loops), source + nest_.source_offset, target + nest_.target_offset,
             [&](const std::byte* from, std::byte* to) { line_(inner_, from, to); });
}

}  // namespace reshard
