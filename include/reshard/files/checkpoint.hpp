// What is in files: tensors, and where each of their boxes lies. One description for every format, read or to be
// written.
#pragma once

#include <string>
#include <vector>

#include "reshard/model/rules.hpp"

/// Checkpoints and arrays on disk.
namespace reshard::files {

/// A box of a tensor in a file: its element (i_0, ...) lies at offset + sum (i_k - box[k].begin) * strides[k], in
/// bytes.
struct StoredBox {
    Box box;                     ///< in the tensor's indices
    Index file = 0;              ///< of Checkpoint::files
    Index offset = 0;            ///< bytes from the start of the file
    std::vector<Index> strides;  ///< bytes, one per dimension
    friend bool operator==(const StoredBox&, const StoredBox&) = default;
};

/// A tensor and all of its boxes.
struct StoredTensor {
    std::string name;              ///< as the checkpoint calls it
    DType dtype = DType::f32;      ///< of its elements
    std::vector<Index> shape;      ///< in elements
    std::vector<StoredBox> boxes;  ///< not empty ones
    std::string fill = {};         ///< bytes of the element that is where no box is; empty: boxes must be everywhere
};

/// A file of a checkpoint.
struct StoredFile {
    std::string path;  ///< to open it; of one that is to be written, within its folder
    Index bytes = 0;   ///< its size
};

/// Files and what is in them.
struct Checkpoint {
    std::string format;                 ///< in words
    std::vector<StoredFile> files;      ///< in the order of their names
    std::vector<StoredTensor> tensors;  ///< in the order in which the first file has them, then the second, ...
    /// Not 0: so many ranks have files of their own. Tensors are then what one rank has, `ranks` of them by the same
    /// name in turn, and only rules say of which boxes of the whole they are.
    Index ranks = 0;
    std::string rest = {};  ///< what the format says beside, for a target of the same format
};

/// Reads the headers of a checkpoint: a .safetensors file; a folder with a model.safetensors.index.json; a folder of
/// .safetensors files, sharded by torch DCP or whole; a folder of model-rank-R-part-P.safetensors, as vLLM writes them;
/// an .npy file; a folder that is an array of zarr v3, of raw chunks or shards of them. A single array is a tensor that
/// has the name of its file or folder without what follows the last dot. Errors: io (what cannot be read, or is not
/// what its header says: lengths, overlaps, gaps, sizes past 64 bits, names that leave the folder); unsupported
/// (element types that are not known).
[[nodiscard]] Result<Checkpoint> open_checkpoint(const std::string& path);

/// Whether the boxes of a tensor make it up.
struct Coverage {
    Index missing = 0;   ///< elements that no box has; 0 where boxes overlap, then it is not counted
    bool twice = false;  ///< some element is in two boxes
    friend bool operator==(const Coverage&, const Coverage&) = default;
};

/// Of a tensor whose boxes are in its own indices.
[[nodiscard]] Coverage coverage(const StoredTensor& tensor);

/// The list that rules are applied to. Errors: mismatch (a name twice).
[[nodiscard]] Result<std::vector<ListedTensor>> list_of(const Checkpoint& checkpoint);

/// The checkpoint with the tensors of its ranks put together as the source lines of the rules say; shapes are those of
/// the list, or, without one, what the ranks' tiles add up to. Replicas are read from one rank. Of a checkpoint without
/// ranks itself. Errors: as apply_rules; mismatch (tiles of another shape than the rules say, missing or too many
/// ranks).
[[nodiscard]] Result<Checkpoint> joined(Checkpoint checkpoint, std::string_view rules,
                                        std::span<const ListedTensor> list);

}  // namespace reshard::files
