#include "files/base/cast.hpp"

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
    with_element_type(from, [&]<class From>(From) {
        with_element_type(to, [&]<class To>(To) {
            if constexpr (casts<From> && casts<To>)
                for_each(loops, source_bytes + source.offset_bytes, target_bytes + target.offset_bytes,
                         [&](const std::byte* at, std::byte* into) { cast_line<From, To>(line, at, into); });
        });
    });
}

}  // namespace reshard::files
