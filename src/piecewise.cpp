#include "piecewise.hpp"

#include <algorithm>

#include "placement.hpp"

namespace reshard {

namespace {

// The largest tile side that no step changes; the first of equal ones, whose pieces lie farthest apart.
std::optional<std::size_t> dim_to_cut(const Plan& plan) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < plan.source.dims.size(); ++i) {
        const Dim& dim = plan.source.dims[i];
        const bool same = std::ranges::all_of(plan.steps, [&](const Step& step) { return step.layout.dims[i] == dim; });
        if (!same || !divides(dim) || tile_extent(dim) < 2) continue;
        if (!best || tile_extent(dim) > tile_extent(plan.source.dims[*best])) best = i;
    }
    return best;
}

Pieces pieces_of(const Plan& plan, std::size_t dim, Index extent) {
    return {ceil_divide(tile_extent(plan.source.dims[dim]), extent), dim, extent};
}

}  // namespace

Plan plan_of(const Plan& plan, const Pieces& pieces, Index piece) {
    const Dim& whole = plan.source.dims[pieces.dim];
    const Index left = tile_extent(whole) - piece * pieces.extent;
    const Index extent = shard_count(whole) * std::min(pieces.extent, left);
    Plan cut = plan;
    cut.source.dims[pieces.dim].extent = extent;
    cut.target.dims[pieces.dim].extent = extent;
    for (Step& step : cut.steps) step.layout.dims[pieces.dim].extent = extent;
    return cut;
}

Storage storage_of(const Storage& whole, const Pieces& pieces, Index piece) {
    return {whole.offset + piece * pieces.extent * whole.strides[pieces.dim], whole.strides};
}

Index footprint_bytes(const Plan& plan, const Pieces& pieces) {
    const Index ends = saturating_add(tile_bytes(plan.source), tile_bytes(plan.target));
    const Index workspace = pieces.count == 1 ? place_tiles(plan, target_room_bytes(plan)).workspace_bytes
                                              : place_tiles(plan_of(plan, pieces, 0), 0).workspace_bytes;
    return saturating_add(ends, workspace);
}

std::optional<Pieces> pieces_within(const Plan& plan, Index footprint_bytes_max) {
    if (footprint_bytes(plan, {}) <= footprint_bytes_max) return Pieces{};
    const auto dim = dim_to_cut(plan);
    if (!dim) return std::nullopt;
    const auto fits = [&](Index extent) {
        return footprint_bytes(plan, pieces_of(plan, *dim, extent)) <= footprint_bytes_max;
    };
    if (!fits(1)) return std::nullopt;
    Index low = 1;  // fits
    Index high = tile_extent(plan.source.dims[*dim]);
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return pieces_of(plan, *dim, low);
}

}  // namespace reshard
