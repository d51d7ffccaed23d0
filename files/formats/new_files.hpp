// Files that are to be written: how long each is, where tensors lie in them, and what else they have.
#pragma once

#include "reshard/files/convert.hpp"

namespace reshard::files {

/// A tensor that files are to hold as its layout says.
struct NewTensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::shared_ptr<const Layout> layout;  ///< of whatever element type
};

/// Bytes that are known before any tensor is read.
struct FixedBytes {
    Index file = 0;
    Index offset = 0;
    std::string bytes;
};

/// Bytes of a file that have a checksum: a tensor, or what a rank has of it.
struct SummedBytes {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    std::string tensor;
};

struct NewFiles {
    Checkpoint what;                  ///< tensors as they were asked for; files by their names within the folder
    std::vector<FixedBytes> fixed;    ///< headers
    std::vector<SummedBytes> summed;  ///< by file and place
    std::vector<std::pair<std::string, std::string>> texts;  ///< small files: name, text
    std::vector<Index> grain = {};  ///< of one tensor: cut at multiples of these, files stay whole
};

/// Boxes of tensors that files of ranks have at most, if the memory does not say less.
inline constexpr Index new_boxes_max = Index{1} << 22;

/// What new files are to hold. It refers to its parts.
struct NewContents {
    std::span<const NewTensor> tensors;
    const ConvertOptions& options;
    const std::string& file;          ///< its name, if the form is one file
    const std::string& rest;          ///< as Checkpoint::rest
    Index boxes_max = new_boxes_max;  ///< in files of ranks
};

/// Errors: unsupported (more than 65536 ranks), overflow, infeasible (more boxes), mismatch (a tensor that is cut, if
/// the form holds whole ones; ranks that are not 0 to n - 1), io (a tensor twice).
[[nodiscard]] Result<NewFiles> new_files(const NewContents& contents);

/// Fails unless the layout of the tensor is whole on each device. Errors: mismatch.
[[nodiscard]] Result<void> is_whole(const NewTensor& tensor, const ConvertOptions& options);

}  // namespace reshard::files
