// The work of one thread of a copy kernel. The kernels on a device and their doubles on a host run these same
// functions, so the doubles test the addresses. They cannot test how threads synchronize.
#pragma once

#include "backends/nccl/kernels/copy_box.hpp"

namespace reshard::nccl {

struct alignas(8) Word8 {
    std::uint32_t part[2];
};
struct alignas(16) Word16 {
    std::uint32_t part[4];
};
struct alignas(16) Word16x2 {
    Word16 part[2];
};

/// The vector of so many bytes.
template <std::size_t bytes>
struct VectorOf;
template <>
struct VectorOf<1> {
    using Type = std::uint8_t;
};
template <>
struct VectorOf<2> {
    using Type = std::uint16_t;
};
template <>
struct VectorOf<4> {
    using Type = std::uint32_t;
};
template <>
struct VectorOf<8> {
    using Type = Word8;
};
template <>
struct VectorOf<16> {
    using Type = Word16;
};
template <>
struct VectorOf<32> {
    using Type = Word16x2;
};

/// Copies rows. A thread loads everything before its first store, and neighbours in a block take neighbouring vectors.
template <class Vector>
RESHARD_ON_DEVICE void copy_rows(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    Vector vectors[units_thread];
    std::int64_t targets[units_thread];
    const std::uint32_t first = block * units_block + thread;
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        const std::uint32_t unit = first + i * threads;
        targets[i] = -1;
        if (unit >= box.units) continue;
        const Offsets at = offsets_of(box, unit);
        targets[i] = at.target;
        vectors[i] = *reinterpret_cast<const Vector*>(box.source + at.source);
    }
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        if (targets[i] >= 0) *reinterpret_cast<Vector*>(box.target + targets[i]) = vectors[i];
    }
}

struct alignas(8) Word8x2 {
    Word8 part[2];
};

/// As copy_rows, but every source is the pattern.
template <class Vector>
RESHARD_ON_DEVICE void fill_rows(const DeviceBox& box, std::uint32_t block, std::uint32_t thread) {
    RESHARD_UNROLL
    for (std::uint32_t i = 0; i < units_thread; ++i) {
        const std::uint32_t unit = block * units_block + thread + i * threads;
        if (unit >= box.units) continue;
        *reinterpret_cast<Vector*>(box.target + offsets_of(box, unit).target) =
            *reinterpret_cast<const Vector*>(box.pattern);
    }
}

/// Picks four of the eight bytes of (low, high): four bits of `selector` name each one. A device has this instruction.
RESHARD_ON_DEVICE std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selector);
#else
    const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
    std::uint32_t picked = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned byte = (selector >> (4 * i)) & 7u;
        picked |= static_cast<std::uint32_t>((both >> (8 * byte)) & 0xffu) << (8 * i);
    }
    return picked;
#endif
}

/// Turns a square of packed words in registers: word i gets element i of every word.
template <class Word>
RESHARD_ON_DEVICE void turn(Word (&)[1]) {}

RESHARD_ON_DEVICE void turn(std::uint32_t (&words)[2]) {
    const std::uint32_t first = words[0];
    words[0] = pick_bytes(first, words[1], 0x5410);
    words[1] = pick_bytes(first, words[1], 0x7632);
}

RESHARD_ON_DEVICE void turn(std::uint32_t (&words)[4]) {
    const std::uint32_t low01 = pick_bytes(words[0], words[1], 0x5140);
    const std::uint32_t low23 = pick_bytes(words[2], words[3], 0x5140);
    const std::uint32_t high01 = pick_bytes(words[0], words[1], 0x7362);
    const std::uint32_t high23 = pick_bytes(words[2], words[3], 0x7362);
    words[0] = pick_bytes(low01, low23, 0x5410);
    words[1] = pick_bytes(low01, low23, 0x7632);
    words[2] = pick_bytes(high01, high23, 0x5410);
    words[3] = pick_bytes(high01, high23, 0x7632);
}

inline constexpr std::uint32_t tile_words = 32;  ///< words in a line; a tile has as many lines as a line has elements
inline constexpr std::uint32_t tile_lines = threads / tile_words;  ///< lines that a block takes at once

/// The tile of one block in shared memory, in words of `Pack` elements. Lines are rotated: the threads of a warp use
/// different banks when they write down a column and when they read along a line.
template <class Word, std::uint32_t Pack>
struct Tile {
    Word words[Pack * tile_words][tile_words];
};

struct TilePlace {
    Offsets plane;
    std::uint32_t across;  ///< number of the tile in its plane
    std::uint32_t down;
};

RESHARD_ON_DEVICE TilePlace tile_place(const DeviceBox& box, std::uint32_t tile) {
    const std::uint32_t lines = quotient(box.tiles_across, tile);
    const std::uint32_t plane = quotient(box.tiles_down, lines);
    return {offsets_of(box, plane), tile - lines * box.tiles_across.value, lines - plane * box.tiles_down.value};
}

// Both functions below read each field of the box once, before their loops. A field that is read within a condition, or
// after a store that could have changed it, is read again for each word. Then each word waits for it.

/// Copies from the source into the tile. A block does this before its threads synchronize. Pack divides the extents. A
/// thread loads everything before its first store.
template <class Word, std::uint32_t Pack>
RESHARD_ON_DEVICE void read_tile(const DeviceBox& box, const TilePlace& place, std::uint32_t thread,
                                 Tile<Word, Pack>& shared) {
    constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(Word) / Pack);
    constexpr std::uint32_t squares = tile_words / tile_lines;  // of Pack x Pack elements, for one thread
    const std::uint32_t x = thread % tile_words;
    const std::uint32_t y = thread / tile_words;
    const std::uint32_t column = (place.across * tile_words + x) * Pack;
    const std::uint32_t row = (place.down * tile_words + y) * Pack;
    const std::uint32_t rows = column < box.columns ? box.rows : 0;  // that this thread may read
    const std::int64_t stride = box.row_stride;
    const unsigned char* source = box.source + place.plane.source + column * element_bytes + row * stride;
    Word words[squares][Pack] = {};
    RESHARD_UNROLL
    for (std::uint32_t k = 0; k < squares; ++k, source += tile_lines * Pack * stride) {
        if (row + k * tile_lines * Pack >= rows) continue;
        RESHARD_UNROLL
        for (std::uint32_t i = 0; i < Pack; ++i) words[k][i] = *reinterpret_cast<const Word*>(source + i * stride);
    }
    RESHARD_UNROLL
    for (std::uint32_t k = 0; k < squares; ++k) {
        turn(words[k]);
        RESHARD_UNROLL
        for (std::uint32_t i = 0; i < Pack; ++i)
            shared.words[x * Pack + i][(y + k * tile_lines + x) % tile_words] = words[k][i];
    }
}

/// Copies from the tile to the target, after the threads have synchronized.
template <class Word, std::uint32_t Pack>
RESHARD_ON_DEVICE void write_tile(const DeviceBox& box, const TilePlace& place, std::uint32_t thread,
                                  const Tile<Word, Pack>& shared) {
    constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(Word) / Pack);
    constexpr std::uint32_t count = Pack * tile_words / tile_lines;  // words of one thread
    const std::uint32_t y = thread % tile_words;
    const std::uint32_t line = thread / tile_words;
    const std::uint32_t row = (place.down * tile_words + y) * Pack;
    const std::uint32_t column = place.across * tile_words * Pack + line;
    const std::uint32_t columns = row < box.rows ? box.columns : 0;  // that this thread may write
    const std::int64_t stride = box.column_stride;
    unsigned char* target = box.target + place.plane.target + row * element_bytes + column * stride;
    Word words[count];
    RESHARD_UNROLL
    for (std::uint32_t k = 0; k < count; ++k) {
        const std::uint32_t own = line + k * tile_lines;
        words[k] = shared.words[own][(y + own / Pack) % tile_words];
    }
    RESHARD_UNROLL
    for (std::uint32_t k = 0; k < count; ++k, target += tile_lines * stride) {
        if (column + k * tile_lines < columns) *reinterpret_cast<Word*>(target) = words[k];
    }
}

}  // namespace reshard::nccl
