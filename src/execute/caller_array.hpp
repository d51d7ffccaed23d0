// The caller's array on this rank, as plans that are made without a planner see it.
#pragma once

#include <string_view>

#include "reshard/backends/backend.hpp"

namespace reshard {

/// The bytes from the start of a buffer to the end of `tile`. Errors: as extent_of, and overflow; `what` names the
/// storage in them.
[[nodiscard]] Result<Index> bytes_needed(const Storage& storage, const Tile& tile, Index element_bytes,
                                         std::string_view what);

/// Fails with Code::mismatch if two elements of an array of this shape may share a place.
[[nodiscard]] Result<void> check_distinct(const Storage& storage, const std::vector<Index>& shape);

/// The indices [0, extent) in each dimension.
[[nodiscard]] Tile tile_of_shape(const std::vector<Index>& shape);

/// A plan of one step that copies. The least sizes of its buffers are 0, for the caller to set.
[[nodiscard]] RankPlan one_step(DType dtype, Schedule schedule, Slot from, Slot to);

}  // namespace reshard
