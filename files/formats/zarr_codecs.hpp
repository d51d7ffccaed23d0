// Codecs in the JSON of zarr v3 and v2.
#pragma once

#include "files/base/codecs.hpp"
#include "files/formats/json_text.hpp"

namespace reshard::files {

/// The codecs of a chunk.
struct ZarrCodecs {
    std::vector<std::size_t> order;  ///< dimensions from the outermost to the innermost; empty: C order
    bool swapped = false;            ///< big-endian elements
    Codecs codecs;
};

/// Reads the list `codecs` of v3, without sharding. Errors: io; unsupported (a codec that is not known, or whose
/// library this build lacks).
[[nodiscard]] Result<ZarrCodecs> parse_zarr_codecs(const Json& json, std::size_t dims, Index element_bytes);
/// Returns such a list: `bytes`, then the codecs.
[[nodiscard]] Json zarr_codecs(const Codecs& codecs, Index element_bytes);

/// Read and return the `compressor` of v2, which is one codec or null. Errors: as parse_zarr_codecs.
[[nodiscard]] Result<Codecs> parse_compressor(const Json& json, Index element_bytes);
[[nodiscard]] Json zarr_compressor(const Codecs& codecs);

}  // namespace reshard::files
