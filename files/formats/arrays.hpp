// Single arrays: .npy files, and folders of zarr v3 (zarr.hpp).
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
/// (raw or big-endian elements).
[[nodiscard]] Result<Checkpoint> open_npy(const std::string& path);

/// Describe the files of one tensor in Form::npy and Form::zarr. Errors: mismatch (several tensors, or a cut one);
/// unsupported; overflow; usage (chunks and shards that do not fit the array).
[[nodiscard]] Result<NewFiles> new_npy(const NewContents& contents);
[[nodiscard]] Result<NewFiles> new_zarr(const NewContents& contents);

}  // namespace reshard::files
