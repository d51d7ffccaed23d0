// An array in the order of its file, from tiles that lie on many ranks.
#pragma once

#include "reshard/layout.hpp"
#include "tool/files/file.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

/// True for the first of the devices that hold the same tile, which writes it.
[[nodiscard]] bool writes_array(const Layout& layout, Index rank);

/// Collective: writes the elements of the array part by part. Rank 0 has the stream, the others null. Errors, on all
/// ranks: io.
[[nodiscard]] Result<void> stream_array(Rank& rank, const File* stream, const Layout& layout, bool fortran_order,
                                        std::span<const std::byte> tile);

}  // namespace reshard::cli
