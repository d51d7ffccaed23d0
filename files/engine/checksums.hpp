// Reads files again, and compares the checksums of their bytes.
#pragma once

#include "files/engine/open_files.hpp"
#include "files/formats/new_files.hpp"

namespace reshard::files {

/// Files, and the bytes in them that have checksums. Refers to its parts.
struct SummedFiles {
    std::span<const StoredFile> files;
    OpenFiles::Open open;
    std::span<const SummedBytes> summed;
};

/// The part of a rank: number `rank` of `ranks` parts.
struct Turn {
    Index rank = 0;
    Index ranks = 1;
};

/// Reads one part of all summed bytes, at most `stretch_bytes` at once with each worker. Returns a raw sum for each of
/// the summed bytes. The exclusive or of the sums of all parts is the checksum. Errors: io; infeasible.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_sums(const SummedFiles& files, Turn turn, Index workers,
                                                           Index stretch_bytes);

/// Compares raw sums. Errors: io (other bytes were found than are wanted).
[[nodiscard]] Result<void> compare_sums(const SummedFiles& files, std::span<const std::uint32_t> wanted,
                                        std::span<const std::uint32_t> found);

}  // namespace reshard::files
