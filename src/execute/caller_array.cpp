#include "src/execute/caller_array.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {

Result<Index> bytes_needed(const Storage& storage, const Tile& tile, Index element_bytes, std::string_view what) {
    const auto extent = extent_of(storage, tile);
    if (!extent) return fail(extent.error().code, fmt::format("the {} storage: {}", what, extent.error().message));
    const auto bytes = checked_multiply(*extent, element_bytes);
    // A stride along an extent of 1 is never walked, but it is multiplied all the same.
    const bool strides_fit = std::ranges::all_of(
        storage.strides, [&](Index stride) { return checked_multiply(stride, element_bytes).has_value(); });
    if (!bytes || !strides_fit)
        return fail(Code::overflow, fmt::format("the {} storage reaches beyond 64 bits of bytes", what));
    return *bytes;
}

// Each stride must step over all that smaller strides cover.
Result<void> check_distinct(const Storage& storage, const std::vector<Index>& shape) {
    std::vector<std::pair<Index, Index>> sides;  // stride, extent
    for (std::size_t k = 0; k < shape.size(); ++k)
        if (shape[k] > 1) sides.emplace_back(storage.strides[k], shape[k]);
    std::ranges::sort(sides);
    Index covered = 1;
    for (const auto& [stride, extent] : sides) {
        if (stride < covered) return fail(Code::mismatch, "the array storage puts two elements in one place");
        covered = stride * extent;
    }
    return {};
}

Tile tile_of_shape(const std::vector<Index>& shape) {
    Tile tile(shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k)
        if (shape[k] > 0) tile[k].intervals.push_back({0, shape[k]});
    return tile;
}

RankPlan one_step(DType dtype, Schedule schedule, Slot from, Slot to) {
    RankPlan plan;
    plan.dtype = plan.target_dtype = dtype;
    plan.steps.push_back({0, std::move(schedule), std::move(from), std::move(to), dtype, dtype});
    return plan;
}

}  // namespace reshard
