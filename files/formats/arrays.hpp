// Single arrays: .npy files. Folders of zarr are in zarr.hpp.
#pragma once

#include "files/formats/new_files.hpp"
#include "files/formats/npy.hpp"

namespace reshard::files {

/// The header of an .npy file, and its size.
struct OpenedNpy {
    NpyHeader header;
    Element element;
    Index bytes = 0;  ///< of the file
};
/// Errors: as parse_npy, with the file's name.
[[nodiscard]] Result<OpenedNpy> open_npy_header(const std::string& path);

/// Opens an .npy file as a checkpoint of one tensor, which is named after the file. Errors: as parse_npy; unsupported
/// (raw elements).
[[nodiscard]] Result<Checkpoint> open_npy(const std::string& path);

/// Returns the name of a file or folder up to its last dot, which is the name of the array in it.
[[nodiscard]] std::string stem_of(const std::string& path);

/// Returns the only tensor. Errors: mismatch (several tensors, or a cut one).
[[nodiscard]] Result<NewTensor> only_tensor(const NewContents& contents);

/// Describes the file of one tensor in Form::npy. Errors: as only_tensor; unsupported; overflow.
[[nodiscard]] Result<NewFiles> new_npy(const NewContents& contents);

}  // namespace reshard::files
