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
static_assert(sizeof(NestedRow) == 17 * sizeof(Index), "a nested row is its seventeen integers");
constexpr const char* nested_row_descr =
    "[('array', '<i8'), ('peer', '<i8'), ('source_offset', '<i8'), ('target_offset', '<i8'), ('run_bytes', '<i8'), "
    "('runs', '<i8', (4,)), ('source_strides', '<i8', (4,)), ('target_strides', '<i8', (4,))]";

Index bytes_of(const Row& row) { return row.runs * row.run_bytes; }
Index bytes_of(const NestedRow& row) {
    Index bytes = row.run_bytes;
    for (const Index runs : row.runs) bytes *= runs;
    return bytes;
}

// Counts the rows of a rank. `others` has the bytes of each peer, and `own_max` the bytes of the busiest rank.
template <class AnyRow>
void add(RowTotals& totals, Index rank, const std::vector<AnyRow>& rows, std::vector<Index>& others, Index& own_max) {
    totals.rows += std::ssize(rows);
    Index own = 0;
    for (const AnyRow& row : rows) {
        const Index bytes = bytes_of(row);
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

bool is_cast(const WrittenMove& move, std::size_t array) {
    if (!move.dtypes) return false;
    const auto [source, target] = move.dtypes(array);
    return source != target;
}

// The lines of arrays.tsv. If some array is cast, a third column has both types.
std::string array_lines(const WrittenMove& move) {
    bool casts = false;
    for (std::size_t array = 0; array < move.arrays && !casts; ++array) casts = is_cast(move, array);
    std::string lines = casts ? "source\ttarget\ttypes\n" : "source\ttarget\n";
    for (std::size_t array = 0; array < move.arrays; ++array) {
        const auto [source, target] = move.names(array);
        lines += printable(source) + "\t" + printable(target);
        if (casts) {
            const auto [from, to] = move.dtypes(array);
            lines += fmt::format("\t{} {}", name(from), name(to));
        }
        lines += "\n";
    }
    return lines;
}

}  // namespace

Result<RowTotals> write_rows(const std::string& folder, const WrittenMove& move, RowSide side, bool nested) {
    RESHARD_TRY(auto& made, destination_of_folder(folder, Contents::rows).and_then(NewFolder::begin));
    const PartialFolder partial{made.path(), folder};
    RowTotals totals;
    std::vector<Index> others(static_cast<std::size_t>(move.ranks), 0);
    Index own_max = 0;
    for (Index rank = 0; rank < move.ranks; ++rank) {
        const auto write = [&](const auto& rows, const char* descr) -> Result<void> {
            add(totals, rank, rows, others, own_max);
            const std::string header = files::npy_header(descr, false, {std::ssize(rows)});
            return write_file(partial, fmt::format("rank{}.rows.npy", rank), header, std::as_bytes(std::span(rows)));
        };
        RESHARD_CHECK(nested ? write(move.nested_rows(rank, side), nested_row_descr)
                             : write(move.rows(rank, side), row_descr));
    }
    const Index others_max = others.empty() ? 0 : *std::ranges::max_element(others);
    totals.sent_bytes_max = side == RowSide::send ? own_max : others_max;
    totals.received_bytes_max = side == RowSide::send ? others_max : own_max;
    const std::string lines = array_lines(move);
    RESHARD_CHECK(write_file(partial, "arrays.tsv", lines, {}));
    RESHARD_CHECK(made.commit());
    return totals;
}

}  // namespace reshard::cli
