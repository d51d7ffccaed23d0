#include "src/model/row_end.hpp"

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {

RowEnd end_of(const Row& row, RowSide side) {
    const bool sends = side == RowSide::send;
    const Index offset = sends ? row.source_offset : row.target_offset;
    const Index stride = sends ? row.source_stride : row.target_stride;
    const Index last = saturating_add(offset, saturating_multiply(row.runs - 1, stride));
    return {offset, stride, saturating_add(last, row.run_bytes)};
}

Result<void> well_formed(const Row& row) {
    if (row.array >= 0 && row.source_offset >= 0 && row.target_offset >= 0 && row.run_bytes >= 1 && row.runs >= 1 &&
        row.source_stride >= 0 && row.target_stride >= 0)
        return {};
    return fail(Code::mismatch, fmt::format("a row of array {} has {} runs of {} bytes, offsets {} and {}, strides {} "
                                            "and {}; runs and bytes are at least 1, all others at least 0",
                                            row.array, row.runs, row.run_bytes, row.source_offset, row.target_offset,
                                            row.source_stride, row.target_stride));
}

Result<RowEnd> end_in_tile(const Row& row, RowSide side, Index tiles, Index tile_bytes) {
    RESHARD_CHECK(well_formed(row));
    if (row.array >= tiles)
        return fail(Code::mismatch, fmt::format("a row of array {}; there are {} tiles", row.array, tiles));
    const RowEnd end = end_of(row, side);
    if (end.reach > tile_bytes)
        return fail(Code::mismatch, fmt::format("a row of array {} ends at byte {}; the tile has {} bytes", row.array,
                                                end.reach, tile_bytes));
    return end;
}

}  // namespace reshard
