// Runs of bytes: a part of body.hpp, which says how it is compiled.
#pragma once

#include <cstring>

#include "src/copy/kernels/dispatch.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

using Size = std::int64_t;

// Runs shorter than a call of memcpy is worth: two pieces that overlap.
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

// Single elements, each at a stride of its own.
template <int bytes>
void copy_elements(const Rows& rows, const std::byte* source, std::byte* target) {
    for (Size row = 0; row < rows.count; ++row) {
        std::memcpy(target + row * rows.target_stride, source + row * rows.source_stride, bytes);
    }
}

void copy_rows(const Rows& rows, const std::byte* source, std::byte* target) {
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
    for (Size row = 0; row < rows.count; ++row) {
        copy_run(source + row * rows.source_stride, target + row * rows.target_stride, rows.bytes);
    }
}

void copy_lanes(std::span<Lane> lanes, Size rows) {
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
