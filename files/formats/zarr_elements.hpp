// Element types and fill values in the JSON of zarr.
#pragma once

#include "files/formats/json_text.hpp"
#include "files/formats/npy.hpp"

namespace reshard::files {

/// Reads the data_type of v3. Errors: unsupported.
[[nodiscard]] Result<FileElements> parse_zarr_type(const Json& json);
/// Returns the data_type of v3, and null if it has no such type.
[[nodiscard]] Json zarr_type(DType dtype, const FileType& type);

/// Returns the bytes of an element that JSON describes; nullopt if it describes no element of this type.
[[nodiscard]] std::optional<std::string> fill_bytes(const FileElements& elements, const Json& json);
/// Returns zero as JSON.
[[nodiscard]] Json zero_fill(DType dtype);

}  // namespace reshard::files
