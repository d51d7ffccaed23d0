// The work of one thread that combines or scales elements.
#pragma once

#include "backends/nccl/kernels/copy_body.hpp"
#include "src/copy/elements.hpp"

namespace reshard::nccl {

template <class Element>
RESHARD_ON_DEVICE Element combined(const DeviceBox& box, Element target, Element source) {
    if (box.fold == Fold::sum) return Element::sum(target, source);
    if (box.fold == Fold::prod) return Element::prod(target, source);
    if constexpr (Element::is_ordered) {
        if (box.fold == Fold::max) return Element::max(target, source);
        if (box.fold == Fold::min) return Element::min(target, source);
    }
    if constexpr (Element::is_scaled) return Element::scaled(source, box.times, box.over);
    return source;  // never reached
}

/// target = fold(target, source), for the elements of one vector at a time.
template <class Element, class Vector>
RESHARD_ON_DEVICE void fold_rows(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    constexpr std::uint32_t elements = sizeof(Vector) / sizeof(Element);
    struct alignas(Vector) Pack {
        Element element[elements];
    };
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        const std::uint32_t unit = block * units_block + thread + i * threads;
        if (unit >= box.units) continue;
        const Offsets at = offsets_of(box, unit);
        const Vector read = *reinterpret_cast<const Vector*>(box.source + at.source);  // whole vectors, then elements
        const Vector old = *reinterpret_cast<const Vector*>(box.target + at.target);
        const auto from = bits_as<Pack>(read);
        auto to = bits_as<Pack>(old);
        RESHARD_UNROLL
        for (std::uint32_t k = 0; k < elements; ++k) to.element[k] = combined(box, to.element[k], from.element[k]);
        *reinterpret_cast<Vector*>(box.target + at.target) = bits_as<Vector>(to);
    }
}

}  // namespace reshard::nccl
