// The input of a copy kernel: boxes with their addresses. The host, the kernels and their doubles share it.
#pragma once

#include <cstdint>

#include "src/copy/kernels/on_device.hpp"
#include "src/tables/dtypes.def"

namespace reshard::nccl {

inline constexpr int loops_max = 8;               ///< of one box; deeper nests become several boxes
inline constexpr std::uint32_t threads = 256;     ///< of one block, in every kernel
inline constexpr std::uint32_t units_thread = 4;  ///< vectors that a thread loads before it stores the first
inline constexpr std::uint32_t units_block = threads * units_thread;
inline constexpr std::uint32_t units_max = 1u << 31;  ///< of one box, exclusive: larger ones become several boxes

/// Division by a number that is known beforehand, as a multiplication. Exact for numerators below 2^31.
struct Divisor {
    std::uint32_t value = 1;
    std::uint32_t multiplier = 0;
    std::uint32_t shift = 0;
};

inline Divisor divisor(std::uint32_t value) {
    Divisor made{value, 0, 0};
    while ((std::uint64_t{1} << made.shift) < value) ++made.shift;
    const std::uint64_t above = (std::uint64_t{1} << made.shift) - value;
    made.multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * above) / value + 1);
    return made;
}

RESHARD_ON_DEVICE std::uint32_t quotient(const Divisor& by, std::uint32_t number) {
    const std::uint64_t high = (static_cast<std::uint64_t>(number) * by.multiplier) >> 32;
    return static_cast<std::uint32_t>((high + number) >> by.shift);
}

struct DeviceLoop {
    Divisor extent;
    std::int64_t source_stride;  ///< bytes
    std::int64_t target_stride;
};

/// How a source element changes a target element. `scale` uses the source alone.
enum class Fold : std::int32_t { sum, prod, max, min, scale };

/// The type of an element, in the order of DType.
enum class ElementId : std::int32_t {
#define X(name, ...) name,
    RESHARD_DTYPES(X, X)
#undef X
};

/// One box. For rows, the loops run over vectors, outermost first. For tiles, they run over planes of columns x rows
/// words: the source is contiguous along columns, the target along rows.
struct DeviceBox {
    const unsigned char* source;
    unsigned char* target;
    std::uint64_t first_block;  ///< of this box in its launch
    std::uint32_t units;        ///< vectors, or tiles of a tile box
    std::int32_t loop_count;
    DeviceLoop loops[loops_max];
    Divisor tiles_across;  ///< of a plane, along columns
    Divisor tiles_down;    ///< along rows
    std::uint32_t columns;
    std::uint32_t rows;
    std::int64_t row_stride;     ///< in the source, bytes
    std::int64_t column_stride;  ///< in the target, bytes
    std::int64_t times;          ///< of a scale
    std::int64_t over;
    Fold fold;
    ElementId from;                         ///< of a cast: the type of the source's elements
    alignas(16) unsigned char pattern[16];  ///< of a fill, repeated to fill all bytes
};

/// The one argument of every kernel.
struct DeviceBoxes {
    const DeviceBox* boxes;
    std::uint32_t count;
};

/// The box that `block` works on. Blocks are numbered below 2^31 in a launch; the boxes' first blocks ascend from 0.
RESHARD_ON_DEVICE const DeviceBox& box_of(const DeviceBoxes& all, std::uint64_t block) {
    std::uint32_t low = 0;
    std::uint32_t high = all.count;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (all.boxes[middle].first_block <= block) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return all.boxes[low];
}

/// The offsets of a unit in bytes.
struct Offsets {
    std::int64_t source;
    std::int64_t target;
};

RESHARD_ON_DEVICE Offsets offsets_of(const DeviceBox& box, std::uint32_t unit) {
    Offsets at{0, 0};
    for (int k = box.loop_count - 1; k >= 0; --k) {
        const DeviceLoop& loop = box.loops[k];
        const std::uint32_t above = quotient(loop.extent, unit);
        const std::int64_t index = unit - above * loop.extent.value;
        at.source += index * loop.source_stride;
        at.target += index * loop.target_stride;
        unit = above;
    }
    return at;
}

}  // namespace reshard::nccl
