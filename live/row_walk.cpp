#include "live/row_walk.hpp"

#include <array>
#include <cstring>

#include "src/model/row_end.hpp"

namespace reshard::live {
namespace {

using Numbers = std::array<Index, 5>;  // array, offset, bytes of a run, runs, stride

// The sender's end; nullopt: outside the tiles.
std::optional<Row> row_of(const Numbers& numbers, const std::vector<Index>& tiles) {
    const auto& [array, offset, run_bytes, runs, stride] = numbers;
    const Row row{array, 0, offset, 0, run_bytes, runs, stride, 0};
    if (!well_formed(row) || array >= std::ssize(tiles)) return std::nullopt;
    if (end_of(row, RowSide::send).reach > tiles[static_cast<std::size_t>(array)]) return std::nullopt;
    return row;
}

}  // namespace

Index bytes_of(const std::vector<Row>& rows) {
    Index sum = 0;
    for (const Row& row : rows) sum = saturating_add(sum, saturating_multiply(row.run_bytes, row.runs));
    return sum;
}

std::string text_of(const std::vector<Row>& rows, const std::vector<Index>& arrays) {
    std::string text;
    for (const Row& row : rows) {
        const Numbers numbers{arrays[static_cast<std::size_t>(row.array)], row.source_offset, row.run_bytes, row.runs,
                              row.source_stride};
        text.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
    }
    return text;
}

std::optional<std::vector<Row>> rows_of(std::string_view bytes, const std::vector<Index>& tiles) {
    std::vector<Row> rows;
    if (bytes.size() % sizeof(Numbers) != 0) return std::nullopt;
    for (; !bytes.empty(); bytes.remove_prefix(sizeof(Numbers))) {
        Numbers numbers{};
        std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
        const std::optional<Row> row = row_of(numbers, tiles);
        if (!row) return std::nullopt;
        rows.push_back(*row);
    }
    return rows;
}

}  // namespace reshard::live
