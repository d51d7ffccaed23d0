// The innermost loops of all copies. One family is compiled once for each instruction set and chosen at first use.
//
//   rows        runs of bytes that are contiguous on both sides, at a stride of their own on each
//   deal        the same for several sources or targets, interleaved row by row
//   transpose   a plane that is contiguous along one dimension in the source and along the other in the target,
//               transposed in registers, for elements of 1, 2, 4, 8 and 16 bytes
//
// Each kernel exists with plain stores and with non-temporal stores of whole cache lines, which bypass the caches. The
// latter are twice as fast if the target is larger than the caches, and slower if it is smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace reshard {

/// Bytes of a cache line.
inline constexpr std::int64_t line_bytes = 64;

/// The stores of a copy: through the caches, or non-temporal stores of whole cache lines. Call store_fence() after the
/// latter, before another thread or process is notified.
enum class Store { cached, streaming };

/// `count` runs of `bytes`; strides in bytes.
struct Rows {
    std::int64_t count = 1;
    std::int64_t bytes = 0;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
};

/// Runs that are moved row by row, interleaved with other lanes. One tile is read once for many others.
struct Lane {
    const std::byte* source = nullptr;  ///< of the next row
    std::byte* target = nullptr;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
    std::int64_t bytes = 0;  ///< of a run
    /// The last bytes of a line, between two rows; the next row continues it. Aligned, so that one load reads it.
    std::int64_t held = 0;
    alignas(64) std::byte edge[64] = {};
};

/// Elements (i, j), i < outer, j < inner, at source + i * element + j * source_stride and at
/// target + i * target_stride + j * element. Strides in bytes.
struct Plane {
    std::int64_t outer = 0;
    std::int64_t inner = 0;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
};

/// The instruction sets that kernels are compiled for.
enum class Instructions { plain, avx2, avx512 };

/// The widest instruction set that this processor runs.
[[nodiscard]] Instructions instructions();

/// The kernels for one instruction set. Operands must not overlap; they need no alignment.
struct CopyKernels {
    using CopyRows = void (*)(const Rows&, const std::byte* source, std::byte* target);
    using DealRows = void (*)(std::span<Lane> lanes, std::int64_t rows);
    using Transpose = void (*)(const Plane&, const std::byte* source, std::byte* target);
    const char* name;
    CopyRows rows[2];           // by Store
    DealRows deal[2];           // moves the next `rows` rows of all lanes, and advances the lanes
    Transpose transpose[2][5];  // by Store, and log2 of the element's bytes
};

/// The best kernels that this processor runs. Every call returns the same kernels.
[[nodiscard]] const CopyKernels& copy_kernels();

/// All kernels that this processor runs, the best first.
[[nodiscard]] std::span<const CopyKernels* const> all_copy_kernels();

/// Orders non-temporal stores before everything that follows.
void store_fence();

/// Bytes of the last cache, shared by all cores; 32 MiB when unknown.
[[nodiscard]] std::int64_t last_cache_bytes();

/// The way to store this many bytes, counted over all ranks that share the cache. Streaming stores win beyond about
/// half of it.
[[nodiscard]] inline Store store_for(std::int64_t bytes) {
    return bytes > last_cache_bytes() / 2 ? Store::streaming : Store::cached;
}

}  // namespace reshard
