// Between files and the tiles of ranks: each byte is read once, or written once, by all ranks together.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/files/convert.hpp"

namespace reshard::files {

/// What a rank has of a tensor, dense and row-major.
struct LoadedTile {
    std::string name;                      ///< of the tensor
    std::shared_ptr<const Layout> layout;  ///< of the whole tensor, in the element type that was asked for
    std::vector<Index> shape;              ///< of this rank's tile, in elements, as tile_shape of the layout
    std::unique_ptr<Memory> memory;        ///< the backend's, which peers reach; null where the rank has nothing
    std::span<std::byte> bytes;            ///< of the tile, in `memory`
};

/// A checkpoint on one rank.
struct Loaded {
    std::vector<LoadedTile> tiles;  ///< in the same order on all ranks
    Index read_bytes = 0;           ///< of tensors, by this rank
    Index rounds = 0;               ///< of reading and exchanging
};

/// Fills the tiles that the rules say each rank has, from what open_checkpoint reads. Collective.
/// Of every tensor each rank reads about as much as any other and no rank what another reads, in the order of the
/// files; small tensors are read by one rank each. What was read is cast, then moves by the plans of synthesize. Used
/// of the options are rules (without `target` lines all ranks get all), list, casts, memory (of buffers on each rank,
/// beside the tiles), granule (a tensor of fewer bytes is read by one rank) and jobs (threads of each rank; 0: as many
/// as processors for each rank of a node). All ranks pass the same. Errors, on all ranks and with the reason of the
/// first one that failed: as open_checkpoint, joined and apply_rules; io (a file that became shorter, or that some rank
/// does not see as the others do); infeasible (less memory than a row of some tensor takes); mismatch (options that
/// differ between ranks, more ranks asked for than there are); unsupported (a sum, a device's memory); backend.
[[nodiscard]] Result<Loaded> load(Backend& backend, const std::string& path, const ConvertOptions& options);

/// A tensor that ranks have.
struct SavedTile {
    std::string name;                  ///< of the tensor
    DType dtype = DType::f32;          ///< of its elements
    std::vector<Index> shape;          ///< of the whole tensor, in elements
    std::span<const std::byte> bytes;  ///< of this rank's tile, as the rules place it; dense and row-major
};

/// What save did.
struct Saved {
    Index target_bytes = 0;   ///< of all files
    Index files = 0;          ///< of the target
    Index written_bytes = 0;  ///< of tensors, by this rank
    Index rounds = 0;         ///< of exchanging and writing
};

/// Writes the tensors that ranks have, as `source` lines of the rules say, to a checkpoint of options.form. Collective;
/// all ranks see one file system. Of every tensor each rank writes about as much as any other; what several ranks have
/// is written once, but for Form::ranks, which has replicas in every file. Used of the options are form, rules, casts,
/// memory (of buffers on each rank), granule, file_bytes_max, chunks, shards and jobs, as in load. As with convert
/// nothing has its final name before all is on the disk, and reshard.json has the checksums. Errors, on all ranks and
/// with the reason of the first one that failed: as convert; usage (rules without `source` lines); mismatch (tiles of
/// another size than the rules say, tensors or options that differ between ranks).
[[nodiscard]] Result<Saved> save(Backend& backend, const std::string& path, std::span<const SavedTile> tiles,
                                 const ConvertOptions& options);

}  // namespace reshard::files
