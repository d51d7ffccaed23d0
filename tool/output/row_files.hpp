// The rows of every rank as .npy files that numpy opens as structured arrays.
#pragma once

#include "reshard/model/rows.hpp"
#include "tool/output/new_file.hpp"

namespace reshard::cli {

/// What the files say in all.
struct RowTotals {
    Index rows = 0;
    Index moved_bytes = 0;     ///< between ranks
    Index kept_bytes = 0;      ///< local copies
    Index sent_bytes_max = 0;  ///< of a rank
    Index received_bytes_max = 0;
};

/// rank0.rows.npy and so on, for every rank, and arrays.tsv: a line for each array with what it is called at both ends.
/// The folder takes the place of one that may be there. Errors: io.
[[nodiscard]] Result<RowTotals> write_rows(const std::string& folder, const RowSchedule& schedule, RowSide side,
                                           const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace reshard::cli
