// Boxes as rows of bytes.
#pragma once

#include <span>

#include "reshard/model/rows.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

/// Appends the rows of boxes that lie in both slots. `row` has the array and the peer.
void append_rows(Row row, std::span<const Box> boxes, const Slot& source, const Slot& target, Index element_bytes,
                 std::vector<Row>& rows);

}  // namespace reshard
