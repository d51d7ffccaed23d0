#include "src/plan/split_run.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/execution.hpp"

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

// In pieces as large as the blocks of the dimension whose blocks are largest; the first of equal ones, whose pieces lie
// farthest apart.
std::optional<Split> whole_blocks(const Plan& plan) {
    std::optional<Split> best;
    for (std::size_t i = 0; i < plan.source.dims.size(); ++i) {
        const Index block = block_of(plan, i);
        if (block >= 2 && (!best || block > best->block)) best = Split{i, block, block};
    }
    return best;
}

// The dimension as its blocks and, from each of them, `extent` indices.
void cut_blocks(Layout& layout, const Split& split, Index extent) {
    layout.dims[split.dim].extent /= split.block;
    layout.dims.insert(layout.dims.begin() + static_cast<std::ptrdiff_t>(split.dim) + 1, Dim{extent, {}, {}});
}

}  // namespace

bool is_split_of(const Split& split, const Plan& plan) {
    if (split.dim >= plan.source.dims.size() || split.extent < 1 || split.extent > split.block) return false;
    const Index block = block_of(plan, split.dim);
    return block > 0 && block % split.block == 0;
}

Plan plan_of(const Plan& plan, const Split& split, Index piece) {
    const Index extent = std::min(split.extent, split.block - piece * split.extent);
    Plan cut = plan;
    cut_blocks(cut.source, split, extent);
    cut_blocks(cut.target, split, extent);
    for (Step& step : cut.steps) cut_blocks(step.layout, split, extent);
    return cut;
}

Storage storage_of(const Storage& whole, const Split& split, Index piece) {
    const auto place = whole.strides.begin() + static_cast<std::ptrdiff_t>(split.dim);
    Storage cut{whole.offset + piece * split.extent * *place, {whole.strides.begin(), place}};
    cut.strides.push_back(split.block * *place);
    cut.strides.insert(cut.strides.end(), place, whole.strides.end());
    return cut;
}

std::optional<Split> split_within(const Plan& plan, Index workspace_bytes_max) {
    const auto whole = whole_blocks(plan);
    if (!whole) return std::nullopt;
    const auto fits = [&](Index extent) {
        return workspace_bytes(plan, Split{whole->dim, whole->block, extent}, false) <= workspace_bytes_max;
    };
    if (!fits(1)) return std::nullopt;
    Index low = 1;  // fits
    Index high = whole->block;
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return Split{whole->dim, whole->block, low};
}

}  // namespace reshard
