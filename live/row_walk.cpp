#include "live/row_walk.hpp"

#include <array>
#include <cstring>

namespace reshard::live {
namespace {

using Numbers = std::array<Index, 5>;  // array, offset, bytes of a run, runs, stride

bool fits(const Numbers& row, const std::vector<Index>& tiles) {
    const auto& [array, offset, run_bytes, runs, stride] = row;
    if (array < 0 || array >= std::ssize(tiles) || offset < 0 || run_bytes < 1 || runs < 1 || stride < 0) return false;
    const Index last = saturating_add(offset, saturating_multiply(runs - 1, stride));
    return saturating_add(last, run_bytes) <= tiles[static_cast<std::size_t>(array)];
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
        if (!fits(numbers, tiles)) return std::nullopt;
        Row& row = rows.emplace_back();
        row.array = numbers[0];
        row.source_offset = numbers[1];
        row.run_bytes = numbers[2];
        row.runs = numbers[3];
        row.source_stride = numbers[4];
    }
    return rows;
}

}  // namespace reshard::live
