// How much a disk moves at once, measured in one of its folders.
#pragma once

#include "tool/commands/arguments.hpp"

namespace reshard::cli {

/// How fast a disk reads granules at places in no order.
struct Disk {
    std::vector<std::pair<Index, double>> rates;  ///< bytes of a granule, bytes per second; growing granules
    Index granule = 0;                            ///< the least that reaches 90% of the largest rate
};

/// Writes 256 MiB without a name into the folder, and reads them `rounds` times for each size. Errors: io.
[[nodiscard]] Result<Disk> measure_disk(const std::string& folder, Index rounds);

/// `calibrate --disk FOLDER`.
Result<int> calibrate_disk(const Arguments& arguments);

}  // namespace reshard::cli
