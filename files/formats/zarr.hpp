// zarr.json of an array of zarr v3, and where its chunks lie: codec `bytes`, little-endian, on a regular grid, each in
// a file of its own or several in a shard (sharding_indexed) whose index has a crc32c.
#pragma once

#include "reshard/files/convert.hpp"
#include "src/base/odometer.hpp"

namespace reshard::files {

struct ZarrArray {
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::vector<Index> files;   ///< indices per dimension that one file has: a chunk's or a shard's
    std::vector<Index> chunks;  ///< of a chunk
    bool sharded = false;
    bool index_first = false;  ///< a shard begins with its index
    bool keys_of_v2 = false;   ///< 0.1 or 0/1 instead of c/0/1
    char separator = '/';      ///< in keys
    std::string fill;          ///< bytes of the fill value
    std::string rest = {};     ///< JSON: what zarr.json says that only its reader understands
};

inline constexpr Index zarr_chunks_max = Index{1} << 22;

/// Errors: io (what breaks the format); unsupported (codecs, grids and types that are not known); overflow.
[[nodiscard]] Result<ZarrArray> parse_zarr(std::string_view text);
/// zarr.json of it.
[[nodiscard]] std::string write_zarr(const ZarrArray& array);

/// The path of a file in the folder, by its place in the grid of files.
[[nodiscard]] std::string zarr_key(const ZarrArray& array, std::span<const Index> place);
/// Places in the grid of `step` over `shape`. Errors: unsupported (more than zarr_chunks_max).
[[nodiscard]] Result<std::vector<Index>> grid_of(std::span<const Index> shape, std::span<const Index> step);

/// A folder with zarr.json. Errors: as parse_zarr; io (chunks of another size, indices that lie).
[[nodiscard]] Result<Checkpoint> open_zarr(const std::string& folder);

/// Bytes of the index of a shard of so many chunks, its sum among them.
[[nodiscard]] constexpr Index zarr_index_bytes(Index chunks) { return 16 * chunks + 4; }

}  // namespace reshard::files
