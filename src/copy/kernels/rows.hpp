// Runs of bytes: a part of body.hpp, which says how it is compiled.
#pragma once

#include <cstring>

#include "src/copy/kernels/dispatch.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

using Size = std::int64_t;

// For runs that are too short for a call of memcpy: two pieces that overlap.
template <class Piece>
[[gnu::always_inline]] inline void copy_ends(const std::byte* source, std::byte* target, Size bytes) {
    Piece head;
    Piece tail;
    std::memcpy(&head, source, sizeof head);
    std::memcpy(&tail, source + bytes - sizeof tail, sizeof tail);
    std::memcpy(target, &head, sizeof head);
    std::memcpy(target + bytes - sizeof tail, &tail, sizeof tail);
}

template <int bytes>
struct Bytes {
    std::byte all[bytes];
};

[[gnu::always_inline]] inline void copy_run(const std::byte* source, std::byte* target, Size bytes) {
    if (bytes > 64) {
        std::memcpy(target, source, static_cast<std::size_t>(bytes));
    } else if (bytes >= 32) {
        copy_ends<Bytes<32>>(source, target, bytes);
    } else if (bytes >= 16) {
        copy_ends<Bytes<16>>(source, target, bytes);
    } else if (bytes >= 8) {
        copy_ends<Bytes<8>>(source, target, bytes);
    } else if (bytes >= 4) {
        copy_ends<Bytes<4>>(source, target, bytes);
    } else if (bytes >= 2) {
        copy_ends<Bytes<2>>(source, target, bytes);
    } else if (bytes == 1) {
        *target = *source;
    }
}

// Hardware prefetching stops at the end of a page. If rows are a page apart or more, the lines that are written next
// are prefetched while this one is copied.
constexpr Size page_bytes = 4096;
constexpr Size rows_ahead = 16;

[[gnu::always_inline]] inline bool far_apart(const Rows& rows) {
    return rows.target_stride >= page_bytes && rows.bytes <= page_bytes / 8;
}

// pre: far_apart
[[gnu::always_inline]] inline void ask_ahead(const Rows& rows, Size row, std::byte* target) {
    if (row + rows_ahead >= rows.count) return;
    for (Size at = 0; at < rows.bytes; at += line_bytes)
        __builtin_prefetch(target + (row + rows_ahead) * rows.target_stride + at, 1);
}

// Single elements, with their own stride on each side.
template <int bytes>
void copy_elements(const Rows& given, const std::byte* source, std::byte* target) {
    const Rows rows = given;  // the compiler knows that no copy writes it
    const bool far = far_apart(rows);
    for (Size row = 0; row < rows.count; ++row) {
        if (far) ask_ahead(rows, row, target);
        std::memcpy(target + row * rows.target_stride, source + row * rows.source_stride, bytes);
    }
}

void copy_rows(const Rows& rows, const std::byte* source, std::byte* target) {
    if (rows.count == 1) return copy_run(source, target, rows.bytes);
    switch (rows.bytes) {
        case 1:
            return copy_elements<1>(rows, source, target);
        case 2:
            return copy_elements<2>(rows, source, target);
        case 4:
            return copy_elements<4>(rows, source, target);
        case 8:
            return copy_elements<8>(rows, source, target);
        case 16:
            return copy_elements<16>(rows, source, target);
        default:
            break;
    }
    const bool far = far_apart(rows);
    for (Size row = 0; row < rows.count; ++row) {
        if (far) ask_ahead(rows, row, target);
        copy_run(source + row * rows.source_stride, target + row * rows.target_stride, rows.bytes);
    }
}

// Single elements of two lanes in turn: both faces of the last dimension of an array lie in the same lines.
template <int bytes>
void copy_pairs(const Lane& one, const Lane& other, Size rows) {
    const Rows first{rows, bytes, one.source_stride, one.target_stride};
    const Rows second{rows, bytes, other.source_stride, other.target_stride};
    const std::byte* const sources[] = {one.source, other.source};  // the compiler knows that no copy writes these
    std::byte* const targets[] = {one.target, other.target};
    const bool far = far_apart(first);
    for (Size row = 0; row < rows; ++row) {
        if (far) ask_ahead(first, row, targets[0]);
        std::memcpy(targets[0] + row * first.target_stride, sources[0] + row * first.source_stride, bytes);
        std::memcpy(targets[1] + row * second.target_stride, sources[1] + row * second.source_stride, bytes);
    }
}

// Moves one lane of elements, or two of elements of one size. False if the lanes are others.
bool copy_one_or_two(const Lane* lane, std::size_t lanes, Size rows) {
    if (lanes == 1) {
        if (lane->bytes > 16) return false;
        copy_rows({rows, lane->bytes, lane->source_stride, lane->target_stride}, lane->source, lane->target);
        return true;
    }
    if (lanes != 2 || lane[0].bytes != lane[1].bytes) return false;
    switch (lane->bytes) {
        case 4:
            copy_pairs<4>(lane[0], lane[1], rows);
            return true;
        case 8:
            copy_pairs<8>(lane[0], lane[1], rows);
            return true;
        case 16:
            copy_pairs<16>(lane[0], lane[1], rows);
            return true;
        default:
            return false;
    }
}

void copy_lanes(std::span<Lane> lanes, Size rows) {
    if (copy_one_or_two(lanes.data(), lanes.size(), rows)) {
        for (Lane& lane : lanes) {
            lane.source += rows * lane.source_stride;
            lane.target += rows * lane.target_stride;
        }
        return;
    }
    for (Size row = 0; row < rows; ++row) {
        for (Lane& lane : lanes) {
            copy_run(lane.source, lane.target, lane.bytes);
            lane.source += lane.source_stride;
            lane.target += lane.target_stride;
        }
    }
}

}  // namespace
}  // namespace reshard::KERNELS_NAMESPACE
