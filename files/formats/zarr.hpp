// The zarr.json of an array of zarr v3, the .zarray of v2, and the places of chunks. Chunks are on a regular grid. Each
// has a file of its own, or in v3 several share a shard (sharding_indexed) whose index has a crc32c.
#pragma once

#include "files/base/codecs.hpp"
#include "files/formats/new_files.hpp"
#include "src/base/odometer.hpp"

namespace reshard::files {

struct ZarrArray {
    bool v2 = false;  ///< else v3
    DType dtype = DType::f32;
    FileType type = {};
    bool swapped = false;  ///< big-endian
    std::vector<Index> shape;
    std::vector<Index> files;             ///< indices per dimension of one file: a chunk or a shard
    std::vector<Index> chunks;            ///< of a chunk
    std::vector<std::size_t> order = {};  ///< dimensions of a chunk from the outermost to the innermost; empty: C order
    Codecs codecs = {};                   ///< of each chunk
    bool sharded = false;
    bool index_first = false;  ///< a shard begins with its index
    bool keys_of_v2 = false;   ///< 0.1 or 0/1 instead of c/0/1
    char separator = '/';      ///< in keys
    std::string fill;          ///< bytes of the fill value
    std::string rest = {};     ///< JSON: members of zarr.json (fill_value, attributes, ...) for a target of zarr
};

inline constexpr Index zarr_chunks_max = Index{1} << 22;

/// Reads zarr.json. Errors: io (a text that breaks the format); unsupported (codecs, grids and types that are not
/// known); overflow.
[[nodiscard]] Result<ZarrArray> parse_zarr(std::string_view text);
/// Reads .zarray, and .zattrs, which may be empty. Errors: as parse_zarr.
[[nodiscard]] Result<ZarrArray> parse_zarr2(std::string_view text, std::string_view attributes);

/// Returns the zarr.json of an array, or the .zarray and the .zattrs of v2. pre: C order; v2 has no shards, and one
/// codec at most.
[[nodiscard]] std::string write_zarr(const ZarrArray& array);
[[nodiscard]] std::string write_zarr2(const ZarrArray& array);
[[nodiscard]] std::string write_attributes2(const ZarrArray& array);

/// Returns the path of a file in the folder, by its place in the grid of files.
[[nodiscard]] std::string zarr_key(const ZarrArray& array, std::span<const Index> place);
/// Returns the number of steps in each dimension of `shape`. Errors: unsupported (more than zarr_chunks_max places).
[[nodiscard]] Result<std::vector<Index>> grid_of(std::span<const Index> shape, std::span<const Index> step);

/// Open a folder with zarr.json, or with .zarray. Errors: as parse_zarr; io (chunks of another size, false indices).
[[nodiscard]] Result<Checkpoint> open_zarr(const std::string& folder);
[[nodiscard]] Result<Checkpoint> open_zarr2(const std::string& folder);

/// Describe the files of one tensor in Form::zarr and Form::zarr2. Errors: mismatch (several tensors, or a cut one);
/// unsupported; overflow; usage (chunks and shards that do not fit the array, codecs).
[[nodiscard]] Result<NewFiles> new_zarr(const NewContents& contents);
[[nodiscard]] Result<NewFiles> new_zarr2(const NewContents& contents);

/// Returns the box of the step of a grid at `place`, counted from `begin` and clipped to the shape.
[[nodiscard]] Box box_at(std::span<const Index> begin, std::span<const Index> place, std::span<const Index> step,
                         std::span<const Index> shape);
/// Returns the first index of the step at `place` in each dimension.
[[nodiscard]] std::vector<Index> begin_of(std::span<const Index> place, std::span<const Index> step);

/// Append a number of 64 bits, and the CRC-32C of the bytes, little-endian.
void append_number(std::string& bytes, Index number);
void append_sum(std::string& bytes);

/// Returns the bytes of the index of a shard with this many chunks, including its checksum.
[[nodiscard]] constexpr Index zarr_index_bytes(Index chunks) { return 16 * chunks + 4; }

}  // namespace reshard::files
