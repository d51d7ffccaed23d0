// The contents of files: tensors, and the places of their boxes. One description serves every format, to read and to
// write.
#pragma once

#include <string>
#include <vector>

#include "reshard/model/rules.hpp"

/// Checkpoints and arrays on disk.
namespace reshard::files {

/// A box of a tensor in a file: its element (i_0, ...) lies at offset + sum (i_k - box[k].begin) * strides[k], in
/// bytes. In a compressed file these are decoded bytes, piece after piece.
struct StoredBox {
    Box box;                     ///< in the tensor's indices
    Index file = 0;              ///< of Checkpoint::files
    Index offset = 0;            ///< bytes from the start of the file
    std::vector<Index> strides;  ///< bytes, one per dimension
    friend bool operator==(const StoredBox&, const StoredBox&) = default;
};

/// An element type of a format that is only copied, such as F8_E8M0, F4 or datetime64[s]. Its tensor has unsigned
/// integers of the same width as dtype. If the width is another, the dtype is u8, and the last dimension of the tensor
/// counts bytes.
struct FileType {
    std::string name;  ///< as the format writes it; empty: the dtype says all
    Index bits = 0;    ///< of an element
    friend bool operator==(const FileType&, const FileType&) = default;
};

/// A tensor and all of its boxes.
struct StoredTensor {
    std::string name;              ///< as the checkpoint calls it
    DType dtype = DType::f32;      ///< of its elements
    std::vector<Index> shape;      ///< in elements
    std::vector<StoredBox> boxes;  ///< none of them empty
    /// Bytes of the element outside of all boxes; empty: the boxes must cover the tensor. In a target it stands where no
    /// move writes.
    std::string fill = {};
    FileType type = {};    ///< of the elements, if they are only copied
    bool swapped = false;  ///< the files have big-endian elements
};

/// Compressed bytes that are decoded together.
struct StoredPiece {
    Index offset = 0;  ///< bytes from the start of the file
    Index bytes = 0;   ///< compressed
};

/// A file of a checkpoint.
struct StoredFile {
    std::string path;                      ///< to open it; of a new file, within its folder
    Index bytes = 0;                       ///< its size
    std::vector<StoredPiece> pieces = {};  ///< of a compressed file; each has Checkpoint::piece_bytes when decoded
};

/// Files and their contents.
struct Checkpoint {
    std::string format;                 ///< in words
    std::vector<StoredFile> files;      ///< in the order of their names
    std::vector<StoredTensor> tensors;  ///< in the order of the first file, then of the second, ...
    /// If not 0, this many ranks have files of their own. Each tensor is then one rank's part, and `ranks` tensors with
    /// the same name follow each other. Only rules say which boxes of the whole tensor the parts are.
    Index ranks = 0;
    std::string rest = {};  ///< other members of the format, for a target of the same format
    std::string codecs =
        {};                 ///< that compress the files, as ConvertOptions::codec; empty: the files are not compressed
    Index piece_bytes = 0;  ///< of a decoded piece of a compressed file
};

/// Reads the headers of a checkpoint: a .safetensors file; a folder with a model.safetensors.index.json; a folder of
/// .safetensors files, sharded by torch DCP or whole; a folder of model-rank-R-part-P.safetensors, as vLLM writes them;
/// an .npy file; a folder that is an array of zarr, v3 with or without shards, or v2. A single array is a tensor with
/// the name of its file or folder, up to the last dot. Errors: io (a file that cannot be read or that contradicts its
/// header: lengths, overlaps, gaps, sizes past 64 bits, names that leave the folder); unsupported (element types and
/// codecs that are not known, or whose library this build lacks).
[[nodiscard]] Result<Checkpoint> open_checkpoint(const std::string& path);

/// Tells whether the boxes of a tensor cover it.
struct Coverage {
    Index missing = 0;   ///< elements that no box has; not counted, and 0, if boxes overlap
    bool twice = false;  ///< some element is in two boxes
    friend bool operator==(const Coverage&, const Coverage&) = default;
};

/// Computes the coverage of a tensor whose boxes are in its own indices.
[[nodiscard]] Coverage coverage(const StoredTensor& tensor);

/// Returns the list of tensors for rules. Errors: mismatch (a name twice).
[[nodiscard]] Result<std::vector<ListedTensor>> list_of(const Checkpoint& checkpoint);

/// Puts the tensors of ranks together as the source lines of the rules say. Shapes come from the list, or, if it is
/// empty, from the sum of the ranks' tiles. Replicas are read from one rank. A checkpoint without ranks is returned as
/// it is. Errors: as apply_rules; mismatch (tiles of another shape than the rules say, missing or too many ranks).
[[nodiscard]] Result<Checkpoint> joined(Checkpoint checkpoint, std::string_view rules,
                                        std::span<const ListedTensor> list);

}  // namespace reshard::files
