// Packs the runs of rows into one buffer, and unpacks them. A transport may move one message faster than many runs.
// runs.
#pragma once

#include "reshard/model/transfer.hpp"

namespace reshard {

/// Copies the runs of the rows from the source tiles into `packed`, one after another. tiles[i] is the memory of array
/// i. At most `threads` threads share the work, the calling thread included.
/// Errors: as packed_bytes; mismatch (a run outside its tile, an array without a tile, a buffer that is too small);
/// usage (fewer than 1 thread). Nothing is written if it fails.
[[nodiscard]] Result<void> pack(std::span<const Row> rows, std::span<const std::span<const std::byte>> tiles,
                                std::span<std::byte> packed, int threads = 1);

/// Copies runs that were packed by the same rows to the target tiles. Runs must not overlap. Errors: as pack.
[[nodiscard]] Result<void> unpack(std::span<const Row> rows, std::span<const std::byte> packed,
                                  std::span<const std::span<std::byte>> tiles, int threads = 1);

}  // namespace reshard
