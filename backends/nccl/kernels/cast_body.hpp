// The work of one thread that casts elements.
#pragma once

#include "backends/nccl/kernels/copy_body.hpp"
#include "src/copy/element_cast.hpp"

namespace reshard::nccl {

/// The elements that a thread of a wide kernel casts at once. It writes at most 16 bytes.
template <class To>
inline constexpr std::uint32_t cast_pack = sizeof(To) > 4 ? 2 : 4;

/// Casts rows, `count` elements at a time. As copy_rows, it loads everything before its first store.
template <class From, class To, std::uint32_t count>
RESHARD_ON_DEVICE void cast_rows(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    using Read = typename VectorOf<sizeof(From) * count>::Type;
    using Written = typename VectorOf<sizeof(To) * count>::Type;
    struct Sources {
        From element[count];
    };
    struct Targets {
        To element[count];
    };
    Read vectors[units_thread];
    std::int64_t targets[units_thread];
    const std::uint32_t first = block * units_block + thread;
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        const std::uint32_t unit = first + i * threads;
        targets[i] = -1;
        if (unit >= box.units) continue;
        const Offsets at = offsets_of(box, unit);
        targets[i] = at.target;
        vectors[i] = *reinterpret_cast<const Read*>(box.source + at.source);
    }
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        if (targets[i] < 0) continue;
        const auto from = bits_as<Sources>(vectors[i]);
        Targets to;
        RESHARD_UNROLL
        for (std::uint32_t k = 0; k < count; ++k) to.element[k] = cast_element<To>(from.element[k]);
        *reinterpret_cast<Written*>(box.target + targets[i]) = bits_as<Written>(to);
    }
}

/// Casts rows to elements of one type. All threads of a block take the same case. Types that are never cast to it have
/// no case.
template <class To, std::uint32_t count>
RESHARD_ON_DEVICE void cast_rows_to(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    switch (box.from) {
#define X(name, Element, ...)                                                                   \
    case ElementId::name:                                                                       \
        if constexpr (casts_to<Element, To>) cast_rows<Element, To, count>(box, block, thread); \
        break;
        RESHARD_DTYPES(X, X)
#undef X
    }
}

}  // namespace reshard::nccl
