// Moves tensors between files and the tiles of ranks. All ranks together read or write each byte once.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/files/convert.hpp"

namespace reshard::files {

/// A rank's tile of a tensor, dense and row-major.
struct LoadedTile {
    std::string name;                      ///< of the tensor
    std::shared_ptr<const Layout> layout;  ///< of the whole tensor, with the wanted element type
    std::vector<Index> shape;              ///< of this rank's tile, in elements, as tile_shape of the layout
    std::unique_ptr<Memory> memory;        ///< from the backend, so peers can reach it; null if the tile is empty
    std::span<std::byte> bytes;            ///< of the tile, in `memory`
};

/// A checkpoint on one rank.
struct Loaded {
    std::vector<LoadedTile> tiles;  ///< in the same order on all ranks
    Index read_bytes = 0;           ///< of tensors, by this rank
    Index rounds = 0;               ///< of reading and exchanging
    bool verified = false;          ///< all files were read before, and their checksums are right
};

/// Reads a checkpoint into the tiles that the rules give each rank. Collective. All ranks read about equal shares of
/// every tensor, in the order of the files, and no byte is read twice. One rank reads a small tensor. The elements are
/// cast, then moved by the plans of synthesize. Uses these options, which must be equal on all ranks: rules (without
/// `target` lines each rank gets whole tensors), list, casts, memory (of buffers on each rank, beside the tiles),
/// granule (one rank reads a tensor of fewer bytes), jobs (threads of each rank; 0: the processors of a node, divided
/// by its ranks), verify (reads all files first, each rank its part, and compares them with the checksums of their
/// reshard.json). Errors, on all ranks and with the reason of the first failed rank: as open_checkpoint, joined and
/// apply_rules; io (a file that became shorter, or that differs between ranks; with verify, bytes that changed and a
/// reshard.json that is missing or of other files); infeasible (less memory than a row of some tensor takes); mismatch
/// (options that differ between ranks, rules for more ranks than the backend has); unsupported (a sum, a device's
/// memory); backend.
[[nodiscard]] Result<Loaded> load(Backend& backend, const std::string& path, const ConvertOptions& options);

/// A tensor on ranks.
struct SavedTile {
    std::string name;                  ///< of the tensor
    DType dtype = DType::f32;          ///< of its elements
    std::vector<Index> shape;          ///< of the whole tensor, in elements
    std::span<const std::byte> bytes;  ///< of this rank's tile, as the rules place it; dense and row-major
};

/// The result of save.
struct Saved {
    Index target_bytes = 0;        ///< of all files
    Index files = 0;               ///< of the target
    Index written_bytes = 0;       ///< of tensors, by this rank
    Index rounds = 0;              ///< of exchanging and writing
    Index resumed = 0;             ///< rounds that an earlier run had written
    bool finished_before = false;  ///< an earlier run had finished it
    bool verified = false;         ///< all files were read again, and their checksums are right
};

/// Writes tensors on ranks, placed by the `source` lines of the rules, to a checkpoint of options.form. Collective. All
/// ranks must see one file system. They write about equal shares of every tensor. Replicas are written once, but
/// Form::ranks has them in every file. Uses these options, as load does: form, rules, casts, memory (of buffers on each
/// rank), granule, file_bytes_max, chunks, shards, jobs, verify (the ranks read the files again, each its part),
/// progress (on rank 0, after each round), resume. As with convert, the target gets its name when everything is on the
/// disk, and reshard.json has the checksums. With resume a run that fails or is killed keeps what it has written. The
/// next run writes only the rounds that are missing, if its options, its ranks and the bytes of its tiles are the same,
/// and if the machine of rank 0 was not started again since. Otherwise it writes all. Errors, on all ranks and with the
/// reason of the first failed rank: as convert; usage (rules without `source` lines); mismatch (tiles of another size
/// than the rules say, tensors or options that differ between ranks).
[[nodiscard]] Result<Saved> save(Backend& backend, const std::string& path, std::span<const SavedTile> tiles,
                                 const ConvertOptions& options);

/// Moves the tensors of a model in memory, between the ends that `source` and `target` lines of the rules describe.
/// Collective. `tiles` has all tensors of the source end on every rank; a tile is empty if the rank holds nothing of
/// it. Each rank gets its tiles of the target end, in memory of the backend. The plans of synthesize move each part
/// from tile to tile, so elements are copied once and cast on the way. Padding is 0. Uses these options, which must be
/// equal on all ranks: rules, casts. Errors, on all ranks and with the reason of the first failed rank: as apply_rules;
/// usage (rules without both ends); mismatch (tiles of another size than the rules say, tensors or options that differ
/// between ranks, rules for more ranks than the backend has); unsupported (a cast between types that files do not cast,
/// a device's memory); backend.
[[nodiscard]] Result<Loaded> move_tensors(Backend& backend, std::span<const SavedTile> tiles,
                                          const ConvertOptions& options);

}  // namespace reshard::files
