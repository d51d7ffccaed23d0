// reshard.json, which has the checksum of every tensor in every file that this library wrote.
#pragma once

#include "files/engine/job.hpp"

namespace reshard::files {

/// Returns the text of reshard.json. `sums`: the raw sum of each of the target's summed bytes.
[[nodiscard]] std::string manifest_of(const Job& job, const std::string& made_by, const std::string& fingerprint,
                                      std::span<const std::uint32_t> sums);

/// The bytes of a checkpoint that have checksums, and these.
struct ListedSums {
    std::vector<StoredFile> files;
    std::vector<SummedBytes> summed;
    std::vector<std::uint32_t> sums;  ///< raw
};

/// Reads the reshard.json of a checkpoint: in its folder, or beside its file. Errors: as open_checkpoint; io (no
/// reshard.json, one that is damaged, or one of other files).
[[nodiscard]] Result<ListedSums> listed_sums(const std::string& path);

}  // namespace reshard::files
