#include "src/plan/split_run.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/buffer_assignment.hpp"

namespace reshard {

namespace {

// Indices of dimension `dim` that no layout on the way tells apart; 0 where one does not divide.
Index block_of(const Plan& plan, std::size_t dim) {
    Index shards = 1;
    for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
        const Dim& on_the_way = layout_before(plan, i).dims[dim];
        if (!divides(on_the_way)) return 0;
        shards = std::lcm(shards, shard_count(on_the_way));  // divides the extent, as both do
    }
    return plan.source.dims[dim].extent / shards;
}

// The dimension with the largest blocks; the first of equal ones, whose pieces lie farthest apart.
std::optional<SplitPlan> whole_blocks(const Plan& plan) {
    std::optional<SplitPlan> best;
    for (std::size_t i = 0; i < plan.source.dims.size(); ++i) {
        const Index block = block_of(plan, i);
        if (block >= 2 && (!best || block > best->block)) best = SplitPlan{1, i, block, block};
    }
    return best;
}

SplitPlan pieces_of(const SplitPlan& whole, Index extent) {
    return {ceil_divide(whole.block, extent), whole.dim, extent, whole.block};
}

// The dimension as its blocks and, from each of them, `extent` indices.
void cut_blocks(Layout& layout, const SplitPlan& pieces, Index extent) {
    layout.dims[pieces.dim].extent /= pieces.block;
    layout.dims.insert(layout.dims.begin() + static_cast<std::ptrdiff_t>(pieces.dim) + 1, Dim{extent, {}, {}});
}

}  // namespace

Plan plan_of(const Plan& plan, const SplitPlan& pieces, Index piece) {
    const Index extent = std::min(pieces.extent, pieces.block - piece * pieces.extent);
    Plan cut = plan;
    cut_blocks(cut.source, pieces, extent);
    cut_blocks(cut.target, pieces, extent);
    for (Step& step : cut.steps) cut_blocks(step.layout, pieces, extent);
    return cut;
}

Storage storage_of(const Storage& whole, const SplitPlan& pieces, Index piece) {
    const auto place = whole.strides.begin() + static_cast<std::ptrdiff_t>(pieces.dim);
    Storage cut{whole.offset + piece * pieces.extent * *place, {whole.strides.begin(), place}};
    cut.strides.push_back(pieces.block * *place);
    cut.strides.insert(cut.strides.end(), place, whole.strides.end());
    return cut;
}

Index footprint_bytes(const Plan& plan, const SplitPlan& pieces, bool donate) {
    const Index ends = saturating_add(tile_bytes(plan.source), tile_bytes(plan.target));
    const Index workspace = pieces.count == 1 ? assign_buffers(plan, capacities_of(plan, donate)).workspace_bytes
                                              : assign_buffers(plan_of(plan, pieces, 0), {}).workspace_bytes;
    return saturating_add(ends, workspace);
}

std::optional<SplitPlan> split_within(const Plan& plan, Index footprint_bytes_max, bool donate) {
    if (footprint_bytes(plan, {}, donate) <= footprint_bytes_max) return SplitPlan{};
    const auto whole = whole_blocks(plan);
    if (!whole) return std::nullopt;
    const auto fits = [&](Index extent) {
        return footprint_bytes(plan, pieces_of(*whole, extent), donate) <= footprint_bytes_max;
    };
    if (!fits(1)) return std::nullopt;
    Index low = 1;  // fits
    Index high = whole->block;
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return pieces_of(*whole, low);
}

}  // namespace reshard
