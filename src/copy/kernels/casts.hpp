// Runs of elements that become floats of another type: a part of body.hpp, which says how it is compiled. The compiler
// vectorizes the loop.
#pragma once

#include "src/copy/kernels/half_floats.hpp"
#include "src/copy/kernels/products.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

template <class From, class To, To (*cast)(From)>
[[gnu::always_inline]] inline void cast_elements(const std::byte* source, std::byte* target, Size elements) {
    for (Size i = 0; i < elements; ++i) {
        From element;
        std::memcpy(&element, source + i * static_cast<Size>(sizeof element), sizeof element);
        const To made = cast(element);
        std::memcpy(target + i * static_cast<Size>(sizeof made), &made, sizeof made);
    }
}

template <class From, class To, To (*cast)(From)>
void cast_run(const std::byte* source, std::byte* target, Size elements) {
    cast_elements<From, To, cast>(source, target, elements);
}

// The same number. It tells the compiler that it is less than a line.
[[gnu::always_inline]] inline Size inside_line(Size bytes) { return bytes & (line_bytes - 1); }

// Past the caches. Each line of the target is made in a line of the first cache.
template <class From, class To, To (*cast)(From)>
void stream_cast(const std::byte* source, std::byte* target, Size elements) {
    constexpr Size from = sizeof(From);
    constexpr Size to = sizeof(To);
    constexpr Size of_line = line_bytes / to;
    constexpr Size ahead = 1024;
    alignas(64) std::byte line[line_bytes];
    const Size head = to_line(target) / to;
    // The parts of short runs are too many, and an element must not lie in two lines.
    if (to_line(target) % to != 0 || elements < head + 4 * of_line)
        return cast_elements<From, To, cast>(source, target, elements);
    cast_elements<From, To, cast>(source, line, head);
    stream_part(line, target, inside_line(head * to));
    Size at = head;
    for (; at + of_line <= elements; at += of_line) {
        for (Size byte = 0; byte < of_line * from; byte += line_bytes)
            __builtin_prefetch(source + at * from + ahead + byte);
        cast_elements<From, To, cast>(source + at * from, line, of_line);
        stream_line(target + at * to, line);
    }
    cast_elements<From, To, cast>(source + at * from, line, elements - at);
    stream_part(line, target + at * to, inside_line((elements - at) * to));
}

}  // namespace
}  // namespace reshard::KERNELS_NAMESPACE
