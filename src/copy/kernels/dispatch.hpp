// The innermost loops of all copies: one family, compiled once for each instruction set, and chosen on first use.
//
//   rows        runs of bytes that are contiguous on both sides, each side with its own stride
//   deal        the same for several sources or targets, interleaved row by row
//   transpose   a plane, contiguous along one dimension in the source and along the other in the target,
//               transposed in registers, for elements of 1, 2, 4, 8 and 16 bytes
//   casts       runs of f32 that become bf16 or f16, and the other way
//   products    the sum of products of keys and words, for digests; the words may be copied on the way
//
// Each kernel exists with plain stores, and with non-temporal stores of whole cache lines. The latter go past the
// caches: they are twice as fast if the target is larger than the caches, and slower if it is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/cache_line.hpp"

namespace reshard {

/// How a copy writes: through the caches, or whole cache lines by non-temporal stores. After non-temporal stores, call
/// store_fence() before you tell another thread or process.
enum class Store { cached, streaming };

/// `count` runs of `bytes`; strides in bytes.
struct Rows {
    std::int64_t count = 1;
    std::int64_t bytes = 0;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
};

/// Runs that move row by row, interleaved with the runs of other lanes: one tile is read once for many others.
struct Lane {
    const std::byte* source = nullptr;  ///< of the next row
    std::byte* target = nullptr;
    std::int64_t source_stride = 0;
    std::int64_t target_stride = 0;
    std::int64_t bytes = 0;  ///< of a run
    /// Between two rows: the last bytes of a line that the next row continues. Aligned, to be loaded as one.
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

/// The casts that have kernels, in the order of CopyKernels::casts.
enum class Casting { f32_to_bf16, bf16_to_f32, f32_to_f16, f16_to_f32 };

/// A sum of 64-bit products: low + 2^32 * high. Exact below 2^32 products.
struct ProductSum {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

/// The instruction sets that kernels are compiled for.
enum class Instructions { plain, avx2, avx512 };

/// The widest set that this processor runs.
[[nodiscard]] Instructions instructions();

/// The kernels of one instruction set. Source and target must not overlap, and need no alignment.
struct CopyKernels {
    using CopyRows = void (*)(const Rows&, const std::byte* source, std::byte* target);
    using DealRows = void (*)(std::span<Lane> lanes, std::int64_t rows);
    using Transpose = void (*)(const Plane&, const std::byte* source, std::byte* target);
    /// Sums keys[i] * word i over the words of 4 bytes of so many cache lines. pre of a pass that streams: the target
    /// begins with a line.
    using SumProducts = ProductSum (*)(const std::uint32_t* keys, const std::byte* source, std::byte* target,
                                       std::int64_t lines);
    /// Casts so many elements, dense on both sides.
    using CastRun = void (*)(const std::byte* source, std::byte* target, std::int64_t elements);
    const char* name;
    CopyRows rows[2];             // by Store
    DealRows deal[2];             // moves the next `rows` rows of all lanes, and advances the lanes
    Transpose transpose[2][5];    // by Store, and log2 of the element's bytes
    SumProducts sum_products[3];  // reads only; copies by each Store
    CastRun casts[2][4];          // by Store and Casting
};

/// The best kernels that this processor runs. Always the same answer.
[[nodiscard]] const CopyKernels& copy_kernels();

/// All kernels that this processor runs, the best first.
[[nodiscard]] std::span<const CopyKernels* const> all_copy_kernels();

/// Orders non-temporal stores before all later stores.
void store_fence();

/// Bytes of a core's last cache, which it shares with its neighbours; 32 MiB if unknown.
[[nodiscard]] std::int64_t last_cache_bytes();

/// How to store so many bytes, summed over all ranks that share the cache. Streaming wins beyond about half of it.
[[nodiscard]] inline Store store_for(std::int64_t bytes) {
    return bytes > last_cache_bytes() / 2 ? Store::streaming : Store::cached;
}

/// The same for bytes that ranks copy to each other. They read as many, and a cached store first fetches its line, so
/// three times the bytes go through the cache.
[[nodiscard]] inline Store store_for_moved(std::int64_t bytes) { return store_for(3 * bytes); }

}  // namespace reshard
