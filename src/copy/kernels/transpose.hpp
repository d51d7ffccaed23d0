// Planes that are transposed in registers: a part of body.hpp, which explains how it is compiled.
#pragma once

#include <utility>

#include "src/copy/kernels/streams.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

// A register of `count` elements. Elements of 16 bytes are pairs of 8.
template <class Element, int count>
struct Register {
    typedef Element type __attribute__((vector_size(sizeof(Element) * count)));
};

// Interleaves the lower or upper halves of two registers, by units of `unit` elements.
template <int unit, bool upper, class Vector, int... index>
[[gnu::always_inline]] inline Vector interleave(Vector a, Vector b, std::integer_sequence<int, index...>) {
    constexpr int count = sizeof...(index);
    constexpr int start = upper ? count / 2 : 0;
    return __builtin_shufflevector(
        a, b, (start + index / unit / 2 * unit + index % unit + (index / unit % 2 == 0 ? 0 : count))...);
}

// Transposes `rows` registers of `rows` units each: the perfect shuffle of the rows, log2(rows) times.
template <class Element, int unit, int rows>
[[gnu::always_inline]] inline void turn(typename Register<Element, rows * unit>::type (&lines)[rows]) {
    using Vector = typename Register<Element, rows * unit>::type;
    constexpr auto indices = std::make_integer_sequence<int, rows * unit>();
    for (int round = 1; round < rows; round *= 2) {
        Vector next[rows];
#pragma GCC unroll 32
        for (int i = 0; i < rows / 2; ++i) {
            next[2 * i] = interleave<unit, false>(lines[i], lines[i + rows / 2], indices);
            next[2 * i + 1] = interleave<unit, true>(lines[i], lines[i + rows / 2], indices);
        }
#pragma GCC unroll 32
        for (int i = 0; i < rows; ++i) lines[i] = next[i];
    }
}

// The transpose of elements of one size, in registers of at most `register_bytes`, so that few spill.
template <class Element_, int unit_, int register_bytes>
struct Turn {
    using Element = Element_;
    static constexpr int unit = unit_;
    static constexpr int bytes = static_cast<int>(sizeof(Element)) * unit;
    static constexpr int width = register_bytes < KERNELS_REGISTER ? register_bytes : KERNELS_REGISTER;
    static constexpr int rows = width / bytes;                         // of the square that is transposed at once
    static constexpr int line = static_cast<int>(line_bytes) / bytes;  // elements of a cache line
};

using Turn1 = Turn<std::uint8_t, 1, 16>;
using Turn2 = Turn<std::uint16_t, 1, 32>;
using Turn4 = Turn<std::uint32_t, 1, 64>;
using Turn8 = Turn<std::uint64_t, 1, 64>;
using Turn16 = Turn<std::uint64_t, 2, 64>;

// Moves a square from `source`, whose lines are source_stride apart, to `target`, whose lines are target_stride apart.
template <class T>
[[gnu::always_inline]] inline void turn_square(const std::byte* source, Size source_stride, std::byte* target,
                                               Size target_stride) {
    typename Register<typename T::Element, T::rows * T::unit>::type lines[T::rows];
#pragma GCC unroll 32
    for (int i = 0; i < T::rows; ++i) std::memcpy(&lines[i], source + i * source_stride, sizeof lines[i]);
    turn<typename T::Element, T::unit, T::rows>(lines);
#pragma GCC unroll 32
    for (int i = 0; i < T::rows; ++i) std::memcpy(target + i * target_stride, &lines[i], sizeof lines[i]);
}

// Moves the rest at the borders, element by element.
template <class T>
void turn_rest(const Plane& plane, const std::byte* source, std::byte* target) {
    for (Size i = 0; i < plane.outer; ++i) {
        for (Size j = 0; j < plane.inner; ++j) {
            std::memcpy(target + i * plane.target_stride + j * T::bytes,
                        source + j * plane.source_stride + i * T::bytes, T::bytes);
        }
    }
}

// As turn_rest, but bypasses the caches.
template <class T>
void stream_rest(const Plane& plane, const std::byte* source, std::byte* target) {
    for (Size i = 0; i < plane.outer; ++i) {
        for (Size j = 0; j < plane.inner; ++j) {
            stream_part(source + j * plane.source_stride + i * T::bytes,
                        target + i * plane.target_stride + j * T::bytes, T::bytes);
        }
    }
}

// A block of T::rows target runs of one cache line each: gathered in the first cache, then stored as whole lines.
template <class T>
[[gnu::always_inline]] inline void stream_block(const Plane& plane, const std::byte* source, std::byte* target) {
    alignas(64) std::byte lines[T::rows * line_bytes];
    for (int j = 0; j < T::line; j += T::rows) {
        turn_square<T>(source + j * plane.source_stride, plane.source_stride, lines + j * T::bytes, line_bytes);
    }
    for (int i = 0; i < T::rows; ++i) stream_line(target + i * plane.target_stride, lines + i * line_bytes);
}

template <class T>
Plane part(const Plane& plane, Size outer, Size inner) {
    return {outer, inner, plane.source_stride, plane.target_stride};
}

// Walks source runs in strips of this many elements. In each strip it writes this many lines of every target run, one
// after another. Memory is slow to switch places, and the next line of a source run is fetched meanwhile.
constexpr Size strip = 1024;
constexpr Size lines_at_once = 2;

// No hardware prefetches this many runs at once.
template <class T>
[[gnu::always_inline]] inline void ask_for_next_lines(const Plane& plane, const std::byte* source) {
    for (Size j = 0; j < T::line; ++j) __builtin_prefetch(source + j * plane.source_stride + line_bytes);
}

// The whole squares of a plane, one `block(source, target)` at a time: bands of cache lines along the target runs, each
// walked along a strip of the source runs. `head` is the first whole line. `ends(plane, source, target)` moves the
// parts of runs before the first square and behind the last one. The last runs move element by element.
template <class T, class Block, class Ends>
[[gnu::always_inline]] inline void turn_strips(const Plane& plane, Size head, const std::byte* source,
                                               std::byte* target, const Block& block, const Ends& ends) {
    const Size squares = plane.outer / T::rows * T::rows;
    const Size end = head + (plane.inner - head) / T::line * T::line;
    for (Size first = 0; first < squares; first += strip) {
        const Size last = first + strip < squares ? first + strip : squares;
        for (Size begin = head; begin < end; begin += lines_at_once * T::line) {
            const Size stop = begin + lines_at_once * T::line < end ? begin + lines_at_once * T::line : end;
            for (Size i = first; i < last; i += T::rows) {
                const bool begins_line = (i - first) * T::bytes % line_bytes == 0;
                for (Size j = begin; j < stop; j += T::line) {
                    const std::byte* from = source + j * plane.source_stride + i * T::bytes;
                    if (begins_line) ask_for_next_lines<T>(plane, from);
                    block(from, target + j * T::bytes + i * plane.target_stride);
                }
            }
        }
    }
    ends(part<T>(plane, plane.outer, head), source, target);
    ends(part<T>(plane, plane.outer, plane.inner - end), source + end * plane.source_stride, target + end * T::bytes);
    turn_rest<T>(part<T>(plane, plane.outer - squares, end - head),
                 source + squares * T::bytes + head * plane.source_stride,
                 target + squares * plane.target_stride + head * T::bytes);
}

template <class T>
void copy_transposed(const Plane& plane, const std::byte* source, std::byte* target) {
    const auto block = [&](const std::byte* from, std::byte* to) {
        for (int k = 0; k < T::line; k += T::rows) {
            turn_square<T>(from + k * plane.source_stride, plane.source_stride, to + k * T::bytes, plane.target_stride);
        }
    };
    turn_strips<T>(plane, 0, source, target, block, turn_rest<T>);
}

// Whole lines need target runs that all begin at the same place in a line. Otherwise plain stores are used.
template <class T>
void stream_transposed(const Plane& plane, const std::byte* source, std::byte* target) {
    const Size head = to_line(target) / T::bytes;
    if (plane.target_stride % line_bytes != 0 || to_line(target) % T::bytes != 0 || plane.inner < head + T::line) {
        return copy_transposed<T>(plane, source, target);
    }
    const auto block = [&](const std::byte* from, std::byte* to) { stream_block<T>(plane, from, to); };
    turn_strips<T>(plane, head, source, target, block, stream_rest<T>);
}

}  // namespace
}  // namespace reshard::KERNELS_NAMESPACE
