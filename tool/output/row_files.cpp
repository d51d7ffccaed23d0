#include "tool/output/row_files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "files/formats/npy.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

static_assert(sizeof(Row) == 8 * sizeof(Index), "a row is its eight integers");
constexpr const char* row_descr =
    "[('array', '<i8'), ('peer', '<i8'), ('source_offset', '<i8'), ('target_offset', '<i8'), "
    "('run_bytes', '<i8'), ('runs', '<i8'), ('source_stride', '<i8'), ('target_stride', '<i8')]";

}  // namespace

Result<RowTotals> write_rows(const std::string& folder, const WrittenMove& move, RowSide side) {
    RESHARD_TRY(auto& made, destination_of_folder(folder, Contents::rows).and_then(NewFolder::begin));
    const PartialFolder partial{made.path(), folder};
    RowTotals totals;
    std::vector<Index> others(static_cast<std::size_t>(move.ranks), 0);
    Index own_max = 0;
    for (Index rank = 0; rank < move.ranks; ++rank) {
        const std::vector<Row> rows = move.rows(rank, side);
        const std::string header = files::npy_header(row_descr, false, {std::ssize(rows)});
        RESHARD_CHECK(
            write_file(partial, fmt::format("rank{}.rows.npy", rank), header, std::as_bytes(std::span(rows))));
        totals.rows += std::ssize(rows);
        Index own = 0;
        for (const Row& row : rows) {
            const Index bytes = row.runs * row.run_bytes;
            if (row.peer == rank) {
                totals.kept_bytes += bytes;
                continue;
            }
            own += bytes;
            others[static_cast<std::size_t>(row.peer)] += bytes;
        }
        totals.moved_bytes += own;
        own_max = std::max(own_max, own);
    }
    const Index others_max = others.empty() ? 0 : *std::ranges::max_element(others);
    totals.sent_bytes_max = side == RowSide::send ? own_max : others_max;
    totals.received_bytes_max = side == RowSide::send ? others_max : own_max;
    std::string lines = "source\ttarget\n";
    for (std::size_t array = 0; array < move.arrays; ++array) {
        const auto [source, target] = move.names(array);
        lines += printable(source) + "\t" + printable(target) + "\n";
    }
    RESHARD_CHECK(write_file(partial, "arrays.tsv", lines, {}));
    RESHARD_CHECK(made.commit());
    return totals;
}

}  // namespace reshard::cli
