#include "src/copy/cast.hpp"

#include <optional>

#include "src/copy/element_type.hpp"

namespace reshard {
namespace {

template <class From, class To>
void cast_elements(Index count, Index source_stride, Index target_stride, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < count; ++i) {
        From element;
        std::memcpy(&element, source + i * source_stride, sizeof element);
        const To made = cast_element<To>(element);
        std::memcpy(target + i * target_stride, &made, sizeof made);
    }
}

template <class From, class To>
constexpr std::optional<Casting> kernel_of() {
    constexpr bool is_f32[] = {std::is_same_v<From, Floating<Whole<float>>>,
                               std::is_same_v<To, Floating<Whole<float>>>};
    if (is_f32[0] && std::is_same_v<To, Floating<Brain>>) return Casting::f32_to_bf16;
    if (is_f32[0] && std::is_same_v<To, Floating<Half>>) return Casting::f32_to_f16;
    if (is_f32[1] && std::is_same_v<From, Floating<Brain>>) return Casting::bf16_to_f32;
    if (is_f32[1] && std::is_same_v<From, Floating<Half>>) return Casting::f16_to_f32;
    return std::nullopt;
}

// With strides that the compiler knows, it casts several elements at once.
template <class From, class To, Store store>
void cast_line(Index elements, Index source_stride, Index target_stride, const std::byte* source, std::byte* target) {
    constexpr std::optional<Casting> kernel = kernel_of<From, To>();
    if (source_stride != sizeof(From) || target_stride != sizeof(To))
        return cast_elements<From, To>(elements, source_stride, target_stride, source, target);
    if constexpr (kernel) {
        constexpr auto how = static_cast<std::size_t>(store);
        copy_kernels().casts[how][static_cast<std::size_t>(*kernel)](source, target, elements);
    } else {
        cast_elements<From, To>(elements, sizeof(From), sizeof(To), source, target);
    }
}

}  // namespace

ElementCast cast_of(DType from, DType to) {
    if (from == to) return {};
    return with_element_type(from, [&]<class From>(From) {
        return with_element_type(to, [&]<class To>(To) -> ElementCast {
            if constexpr (casts_to<From, To>)
                return {sizeof(From),
                        sizeof(To),
                        {cast_line<From, To, Store::cached>, cast_line<From, To, Store::streaming>}};
            else
                return {};
        });
    });
}

}  // namespace reshard
