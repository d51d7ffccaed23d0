// Files that will be written: their lengths, the places of tensors in them, and their other bytes.
#pragma once

#include "reshard/files/convert.hpp"

namespace reshard::files {

/// A tensor that files will hold as its layout says.
struct NewTensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::shared_ptr<const Layout> layout;  ///< of any element type
    FileType type = {};                    ///< of elements that are only copied
    bool padded = false;                   ///< elements that no move writes are 0
};

/// Bytes that are known before any tensor is read.
struct FixedBytes {
    Index file = 0;
    Index offset = 0;
    std::string bytes;
};

/// Bytes of a file that have a checksum: a tensor, or a rank's part of it.
struct SummedBytes {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    std::string tensor;
};

struct NewFiles {
    Checkpoint what;                  ///< tensors in the order of NewContents; files by their names in the folder
    std::vector<FixedBytes> fixed;    ///< headers
    std::vector<SummedBytes> summed;  ///< by file and place
    std::vector<std::pair<std::string, std::string>> texts;  ///< small files: name, text
    std::vector<Index> grain = {};  ///< of one tensor: cuts at multiples of these leave files whole
    /// In compressed files, the offsets of boxes and the sizes of files count decoded bytes until the files are sealed. A
    /// batch holds whole pieces, so every cut is at a multiple of `grain`.
    Index pieces_each = 1;  ///< pieces of each file
    bool indexed = false;   ///< a file ends with an index of zarr that says where its pieces are
    std::string fill = {};  ///< bytes of an element outside of the array
    [[nodiscard]] bool compressed() const { return what.piece_bytes > 0; }
};

/// The most boxes of tensors that files of ranks have, unless the memory allows fewer.
inline constexpr Index new_boxes_max = Index{1} << 22;

/// The contents of new files. Refers to its parts.
struct NewContents {
    std::span<const NewTensor> tensors;
    const ConvertOptions& options;
    const std::string& file;          ///< its name, if the form is one file
    const std::string& rest;          ///< as Checkpoint::rest
    const std::string& codecs;        ///< as Checkpoint::codecs of the source
    Index boxes_max = new_boxes_max;  ///< in files of ranks
};

/// Describes the files of a checkpoint. Errors: unsupported (more than 65536 ranks), overflow, infeasible (more boxes),
/// mismatch (a cut tensor in a form of whole ones; ranks that are not 0 to n - 1), io (a tensor twice).
[[nodiscard]] Result<NewFiles> new_files(const NewContents& contents);

/// Fails unless each device holds the whole tensor. Errors: mismatch.
[[nodiscard]] Result<void> is_whole(const NewTensor& tensor, const ConvertOptions& options);

}  // namespace reshard::files
