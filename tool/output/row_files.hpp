// The rows of every rank as .npy files that numpy opens as structured arrays.
#pragma once

#include <functional>

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

/// A move whose rows are written.
struct WrittenMove {
    Index ranks = 0;
    std::size_t arrays = 0;
    std::size_t questions = 0;                                                    ///< different ones among the arrays
    std::function<std::vector<Row>(Index rank, RowSide side)> rows;               ///< of one rank
    std::function<std::vector<NestedRow>(Index rank, RowSide side)> nested_rows;  ///< the same
    std::function<std::pair<std::string, std::string>(std::size_t)> names;        ///< of an array at both ends
    std::function<std::pair<DType, DType>(std::size_t)> dtypes = {};              ///< at both ends; empty: one type
};

/// Writes rank0.rows.npy and so on, for every rank, with rows or nested rows, and arrays.tsv with a line for each
/// array: its names at both ends, and its types if some array is cast. The new folder replaces an old one. Errors: io.
[[nodiscard]] Result<RowTotals> write_rows(const std::string& folder, const WrittenMove& move, RowSide side,
                                           bool nested);

}  // namespace reshard::cli
