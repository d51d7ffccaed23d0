// Single arrays: .npy files, and folders of zarr v3 (zarr.hpp).
#pragma once

#include "files/formats/new_files.hpp"

namespace reshard::files {

/// An .npy file as a checkpoint of one tensor, named after the file. Errors: as parse_npy; unsupported (big-endian).
[[nodiscard]] Result<Checkpoint> open_npy(const std::string& path);

/// The files of one tensor in Form::npy and Form::zarr. `rest`: what an array of zarr says beside, as JSON.
/// Errors: unsupported, overflow; usage (chunks and shards that do not fit the array).
[[nodiscard]] Result<NewFiles> new_npy(const NewTensor& tensor, const std::string& file);
[[nodiscard]] Result<NewFiles> new_zarr(const NewTensor& tensor, const ConvertOptions& options,
                                        const std::string& rest);

}  // namespace reshard::files
