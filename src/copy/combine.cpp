// Combines and scales elements of each dtype, over boxes and dense runs, and makes their identities.
#include <cassert>
#include <cstring>

#include "src/copy/copy.hpp"
#include "src/copy/element_type.hpp"

namespace reshard {
namespace {

using Loop = LoopNest::Loop;

template <class E>
E load(const std::byte* from) {
    E element;
    std::memcpy(&element, from, sizeof element);
    return element;
}

template <class E>
void store(E element, std::byte* to) {
    std::memcpy(to, &element, sizeof element);
}

template <class E, E (*combine)(E, E)>
void combine_one(const std::byte* source, std::byte* target) {
    store(combine(load<E>(target), load<E>(source)), target);
}

// A constant stride lets the compiler vectorize the loop.
template <class E, E (*combine)(E, E)>
[[gnu::always_inline]] inline void combine_all(Index elements, const std::byte* source, std::byte* target) {
    constexpr auto bytes = static_cast<Index>(sizeof(E));
    for (Index i = 0; i < elements; ++i) combine_one<E, combine>(source + i * bytes, target + i * bytes);
}

using CombineDense = void (*)(Index elements, const std::byte* source, std::byte* target);

// Not inlined, so that the compiler does not merge it with the strided loop.
template <class E, E (*combine)(E, E)>
[[gnu::noinline]] void plain_dense(Index elements, const std::byte* source, std::byte* target) {
    combine_all<E, combine>(elements, source, target);
}

#if defined(__x86_64__)
template <class E, E (*combine)(E, E)>
[[gnu::noinline, gnu::target("avx2")]] void avx2_dense(Index elements, const std::byte* source, std::byte* target) {
    combine_all<E, combine>(elements, source, target);
}

template <class E, E (*combine)(E, E)>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void avx512_dense(Index elements,
                                                                                       const std::byte* source,
                                                                                       std::byte* target) {
    combine_all<E, combine>(elements, source, target);
}
#endif

template <class E, E (*combine)(E, E), CombineDense dense>
void combine_line(const Loop& loop, const std::byte* source, std::byte* target) {
    constexpr auto bytes = static_cast<Index>(sizeof(E));
    if (loop.source_stride == bytes && loop.target_stride == bytes) return dense(loop.extent, source, target);
    for (Index i = 0; i < loop.extent; ++i) {
        combine_one<E, combine>(source + i * loop.source_stride, target + i * loop.target_stride);
    }
}

// Every instruction set gives the same bits, except for the payload of a NaN. Each operation stands alone, and no
// operation is contracted with the next. AVX-512 always includes fused operations, and GCC 12 uses them for complex
// products under any flag. AVX2 has no fused operations.
template <class E, E (*combine)(E, E)>
CombineLine best_line() {
#if defined(__x86_64__)
    if constexpr (E::is_ordered) {
        if (instructions() >= Instructions::avx512) return combine_line<E, combine, avx512_dense<E, combine>>;
    }
    if (instructions() >= Instructions::avx2) return combine_line<E, combine, avx2_dense<E, combine>>;
#endif
    return combine_line<E, combine, plain_dense<E, combine>>;
}

using ScaleLine = void (*)(const Loop&, Scale, std::byte*);

template <class E>
void scale_line(const Loop& loop, Scale scale, std::byte* target) {
    for (Index i = 0; i < loop.extent; ++i) {
        std::byte* at = target + i * loop.target_stride;
        store(E::scaled(load<E>(at), scale.times, scale.over), at);
    }
}

ScaleLine scale_line_of(DType dtype) {
    return with_element_type(dtype, []<class E>(E) -> ScaleLine {
        if constexpr (combines<E>)
            if constexpr (E::is_scaled) return scale_line<E>;
        return nullptr;
    });
}

LoopNest with_a_loop(LoopNest nest) {
    if (nest.loops.empty()) nest.loops.push_back({1, nest.element_bytes, nest.element_bytes});
    return nest;
}

}  // namespace

CombineLine combine_line_of(DType dtype, Combine combine) {
    assert(combine != Combine::copy);
    return with_element_type(dtype, [combine]<class E>(E) -> CombineLine {
        if constexpr (combines<E>) {
            if (combine == Combine::sum) return best_line<E, E::sum>();
            if (combine == Combine::prod) return best_line<E, E::prod>();
            if constexpr (E::is_ordered) {
                if (combine == Combine::max) return best_line<E, E::max>();
                if (combine == Combine::min) return best_line<E, E::min>();
            }
        }
        return nullptr;  // the precondition of the callers excludes this
    });
}

BoxCombine::BoxCombine(DType dtype, Combine combine, const Region& source, const Region& target)
    : dtype_(dtype), combine_(combine), nest_(with_a_loop(loop_nest(source, target))) {}

void BoxCombine::run(const std::byte* source, std::byte* target) const {
    if (nest_.empty) return;
    const std::span<const Loop> loops = nest_.loops;
    const Loop inner = loops.back();
    const CombineLine line = combine_line_of(dtype_, combine_);
    for_each(loops.first(loops.size() - 1), source + nest_.source_offset, target + nest_.target_offset,
             [&](const std::byte* from, std::byte* to) { line(inner, from, to); });
}

void combine_dense(DType dtype, Combine combine, const std::byte* source, std::byte* target, Index elements) {
    const Index bytes = size_of(dtype);
    combine_line_of(dtype, combine)({elements, bytes, bytes}, source, target);
}

BoxScale::BoxScale(DType dtype, Scale scale, const Region& target)
    : dtype_(dtype), scale_(scale), nest_(with_a_loop(loop_nest(target, target))) {}

void BoxScale::run(std::byte* target) const {
    if (nest_.empty) return;
    const std::span<const Loop> loops = nest_.loops;
    const Loop inner = loops.back();
    const ScaleLine line = scale_line_of(dtype_);
    std::byte* start = target + nest_.target_offset;
    for_each(loops.first(loops.size() - 1), start, start, [&](std::byte*, std::byte* to) { line(inner, scale_, to); });
}

Pattern identity_of(DType dtype, Combine combine) {
    Pattern pattern{};
    with_element_type(dtype, [&]<class E>(E) {
        if constexpr (combines<E>) {
            if (combine == Combine::prod) store(E::one(), pattern.data());
            if constexpr (E::is_ordered) {
                if (combine == Combine::max) store(E::lowest(), pattern.data());
                if (combine == Combine::min) store(E::highest(), pattern.data());
            }
        }
    });
    return pattern;
}

}  // namespace reshard
