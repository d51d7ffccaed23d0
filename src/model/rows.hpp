// Parts of tiles as rows of bytes.
#pragma once

#include <span>

#include "reshard/model/rows.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

/// Appends the rows of parts that lie in both slots. `row` has the array and the peer. Each part is a product of sides.
void append_rows(const Row& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                 Index element_bytes, std::vector<Row>& rows);
/// The same with up to four loops a row.
void append_rows(const NestedRow& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                 Index element_bytes, std::vector<NestedRow>& rows);

/// Errors: as validate; unsupported (unreduced axes: rows only copy).
[[nodiscard]] Result<void> copies_only(const Layout& layout);

}  // namespace reshard
