#include "files/base/cast.hpp"

#include <algorithm>
#include <array>

#include "src/copy/element_type.hpp"

namespace reshard::files {
namespace {

// A floating type that a float holds: every one but f64.
template <class E>
inline constexpr bool casts = !has_parts<E> && std::is_same_v<typename E::Number, float>;

template <class From, class To>
void cast_line(const LoopNest::Loop& loop, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < loop.extent; ++i) {
        From element;
        std::memcpy(&element, source + i * loop.source_stride, sizeof element);
        const To cast = To::of(From::number(element));
        std::memcpy(target + i * loop.target_stride, &cast, sizeof cast);
    }
}

}  // namespace

bool can_cast(DType from, DType to) {
    const auto casts_here = []<class E>(E) { return casts<E>; };
    return from != to && with_element_type(from, casts_here) && with_element_type(to, casts_here);
}

namespace {

// Calls visit(line, source, target) for each line of elements of the last dimension.
template <class Visit>
void for_each_line(const Region& source, const Region& target, const std::byte* source_bytes, std::byte* target_bytes,
                   const Visit& visit) {
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
    for_each(loops, source_bytes + source.offset_bytes, target_bytes + target.offset_bytes,
             [&](const std::byte* at, std::byte* into) { visit(line, at, into); });
}

// Reverses the bytes of an element. A complex number is two numbers.
void swap_element(DType dtype, const std::byte* from, std::byte* to) {
    const Index parts = is_complex(dtype) ? 2 : 1;
    const Index bytes = size_of(dtype) / parts;
    for (Index part = 0; part < parts; ++part)
        std::reverse_copy(from + part * bytes, from + (part + 1) * bytes, to + part * bytes);
}

}  // namespace

void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes) {
    with_element_type(from, [&]<class From>(From) {
        with_element_type(to, [&]<class To>(To) {
            if constexpr (casts<From> && casts<To>)
                for_each_line(source, target, source_bytes, target_bytes, &cast_line<From, To>);
        });
    });
}

void copy_swapped(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
                  std::byte* target_bytes) {
    for_each_line(
        source, target, source_bytes, target_bytes,
        [&](const LoopNest::Loop& line, const std::byte* at, std::byte* into) {
            std::array<std::byte, 16> element{};
            for (Index i = 0; i < line.extent; ++i) {
                std::byte* const place = into + i * line.target_stride;
                swap_element(from, at + i * line.source_stride, from == to ? place : element.data());
                if (from != to)
                    cast_box(from, to, {0, size_of(from), {}, {}}, {0, size_of(to), {}, {}}, element.data(), place);
            }
        });
}

}  // namespace reshard::files
