// The zarr.json of an array of zarr v3, and the places of its chunks. Chunks are little-endian (codec `bytes`) on a
// regular grid. Each has a file of its own, or several share a shard (sharding_indexed) whose index has a crc32c.
#pragma once

#include "reshard/files/convert.hpp"
#include "src/base/odometer.hpp"

namespace reshard::files {

struct ZarrArray {
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::vector<Index> files;   ///< indices per dimension of one file: a chunk or a shard
    std::vector<Index> chunks;  ///< of a chunk
    bool sharded = false;
    bool index_first = false;  ///< a shard begins with its index
    bool keys_of_v2 = false;   ///< 0.1 or 0/1 instead of c/0/1
    char separator = '/';      ///< in keys
    std::string fill;          ///< bytes of the fill value
    std::string rest = {};     ///< JSON: members of zarr.json that only its reader understands
};

inline constexpr Index zarr_chunks_max = Index{1} << 22;

/// Reads zarr.json. Errors: io (a text that breaks the format); unsupported (codecs, grids and types that are not
/// known); overflow.
[[nodiscard]] Result<ZarrArray> parse_zarr(std::string_view text);
/// Returns the zarr.json of an array.
[[nodiscard]] std::string write_zarr(const ZarrArray& array);

/// Returns the path of a file in the folder, by its place in the grid of files.
[[nodiscard]] std::string zarr_key(const ZarrArray& array, std::span<const Index> place);
/// Returns the number of steps in each dimension of `shape`. Errors: unsupported (more than zarr_chunks_max places).
[[nodiscard]] Result<std::vector<Index>> grid_of(std::span<const Index> shape, std::span<const Index> step);

/// Opens a folder with zarr.json. Errors: as parse_zarr; io (chunks of another size, false indices).
[[nodiscard]] Result<Checkpoint> open_zarr(const std::string& folder);

/// Returns the bytes of the index of a shard with this many chunks, including its checksum.
[[nodiscard]] constexpr Index zarr_index_bytes(Index chunks) { return 16 * chunks + 4; }

}  // namespace reshard::files
