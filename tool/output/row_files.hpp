// The rows of every rank as .npy files that numpy opens as structured arrays.
#pragma once

#include "reshard/model/rows.hpp"
#include "tool/output/new_file.hpp"

namespace reshard::cli {

/// The totals of the files.
struct RowTotals {
    Index rows = 0;
    Index moved_bytes = 0;     ///< between ranks
    Index kept_bytes = 0;      ///< local copies
    Index sent_bytes_max = 0;  ///< of a rank
    Index received_bytes_max = 0;
};

/// Writes rank0.rows.npy and so on, for every rank, with rows or nested rows, and arrays.tsv with a line for each
/// array: its names at both ends. The new folder replaces an old one. Errors: io.
[[nodiscard]] Result<RowTotals> write_rows(const std::string& folder, const RowSchedule& schedule, RowSide side,
                                           bool nested, const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace reshard::cli
