#include "src/plan/split_run.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/plan/buffer_assignment.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

// The dimension of `layout` that counts the neighbours in dimension `dim` of `plan.source`. In a view it is the last
// digit of that dimension. nullopt if the layout has no such dimension.
std::optional<std::size_t> place_of(const Plan& plan, std::size_t dim, const Layout& layout) {
    const std::vector<Dim>& whole = plan.source.dims;
    if (std::ranges::equal(whole, layout.dims, {}, &Dim::extent, &Dim::extent)) return dim;
    Index inner = 1;
    for (std::size_t k = whole.size(); --k > dim;) inner *= whole[k].extent;
    Index below = 1;
    for (std::size_t k = layout.dims.size(); k-- > 0 && below <= inner; below *= layout.dims[k].extent) {
        const Index extent = layout.dims[k].extent;
        if (below == inner && extent > 1) return whole[dim].extent % extent == 0 ? std::optional(k) : std::nullopt;
    }
    return std::nullopt;
}

// Indices of dimension `dim` that no layout on the way tells apart; 0 where one does not divide.
Index block_of(const Plan& plan, std::size_t dim) {
    Index block = plan.source.dims[dim].extent;
    for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
        const Layout& on_the_way = layout_before(plan, i);
        const auto place = place_of(plan, dim, on_the_way);
        if (!place || !divides(on_the_way.dims[*place])) return 0;
        block = std::gcd(block, block_extent(on_the_way.dims[*place]));
    }
    return block;
}

// True if the steps only copy. Then a piece may be any part.
bool copies(const Plan& plan) {
    return std::ranges::none_of(plan.steps, [](const Step& step) { return changes_summands(step.kind); });
}

bool are_ends(const Split& split) {
    Index before = 0;
    for (const Index end : split.ends) {
        if (end <= before) return false;
        before = end;
    }
    return before == split.block && before > 0;
}

bool is_order(const Split& split) {
    if (split.order.empty()) return true;
    std::vector<std::size_t> sorted = split.order;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i] != i) return false;
    return sorted.size() == split.ends.size();
}

// The dimension as its blocks and, from each of them, `extent` indices.
Layout with_cut_blocks(Layout layout, std::size_t dim, Index block, Index extent) {
    layout.dims[dim].extent /= block;
    layout.dims.insert(layout.dims.begin() + static_cast<std::ptrdiff_t>(dim) + 1, Dim{extent, {}, {}});
    return layout;
}

}  // namespace

std::optional<Blocks> common_blocks(const Plan& plan, Index enough) {
    std::optional<Blocks> best;
    for (std::size_t i = 0; i < plan.source.dims.size(); ++i) {
        const Index block = block_of(plan, i);
        if (block >= 2 && (!best || block > best->block)) best = Blocks{i, block};
        if (best && best->block >= enough) break;
    }
    return best;
}

Split even_split(std::size_t dim, Index block, Index extent) {
    assert(1 <= extent && extent <= block);
    Split split{dim, block, {}};
    for (Index end = extent; end < block; end += std::min(extent, block - end)) split.ends.push_back(end);
    split.ends.push_back(block);
    return split;
}

Split even_pieces(std::size_t dim, Index block, Index count) {
    assert(1 <= count && count <= block);
    Split split{dim, block, {}, {}, true};
    for (Index k = 1; k <= count; ++k) split.ends.push_back(scale_up(block, k, count));
    return split;
}

std::size_t piece_at(const Split& split, std::size_t place) { return split.order.empty() ? place : split.order[place]; }

Interval indices_of(const Split& split, std::size_t piece) {
    return {piece == 0 ? 0 : split.ends[piece - 1], split.ends[piece]};
}

Index largest_extent(const Split& split) {
    Index largest = 0;
    for (std::size_t piece = 0; piece < split.ends.size(); ++piece)
        largest = std::max(largest, indices_of(split, piece).size());
    return largest;
}

Tile piece_of(const Tile& tile, const Split& split, std::size_t piece) {
    assert(split.dim < tile.size() && piece < split.ends.size());
    const Interval own = indices_of(split, piece);
    Tile part = tile;
    std::vector<Interval>& intervals = part[split.dim].intervals;
    intervals.clear();
    for (const Interval& whole : tile[split.dim].intervals) {
        for (Index start = whole.begin / split.block * split.block; start < whole.end;
             start += std::min(split.block, whole.end - start)) {
            const Interval common{std::max(whole.begin, saturating_add(start, own.begin)),
                                  std::min(whole.end, saturating_add(start, own.end))};
            if (common.begin >= common.end) continue;
            if (!intervals.empty() && intervals.back().end == common.begin)
                intervals.back().end = common.end;
            else
                intervals.push_back(common);
        }
    }
    return part;
}

bool keeps_blocks(const Split& split, const Plan& plan) {
    const Index block = block_of(plan, split.dim);
    return block > 0 && block % split.block == 0;
}

Result<void> check_pieces(const Split& split) {
    if (std::ssize(split.ends) > split_pieces_max)
        return fail(Code::plan, fmt::format("{} pieces; a split has at most {}", split.ends.size(), split_pieces_max));
    if (!are_ends(split))
        return fail(Code::plan, fmt::format("the ends of pieces must ascend from at least 1 to the block of {} indices",
                                            split.block));
    if (!is_order(split))
        return fail(Code::plan,
                    fmt::format("the order must name each of {} pieces once, counted from 0", split.ends.size()));
    return {};
}

Result<void> can_split(const Plan& plan, const Split& split) {
    const auto no = [](std::string reason) { return fail(Code::plan, std::move(reason)); };
    if (split.dim >= plan.source.dims.size())
        return no(fmt::format("there is no dimension {} to split along", split.dim));
    RESHARD_CHECK(check_pieces(split));
    if (keeps_blocks(split, plan)) return {};
    if (!split.overlapped)
        return no(
            fmt::format("the plan cannot be split along dimension {} in blocks of {} indices", split.dim, split.block));
    if (plan.steps.size() > 1 || !copies(plan))
        return no(
            fmt::format("pieces of a plan that {} need blocks that no layout on the way cuts; along dimension {} "
                        "blocks of {} indices are cut",
                        copies(plan) ? "has several steps" : "reduces or fills", split.dim, split.block));
    // A block that reaches past 64 bits is as good as the dimension.
    if (split.block > plan.source.dims[split.dim].extent)
        return no(fmt::format("blocks of {} indices are longer than dimension {}, which has {}", split.block, split.dim,
                              plan.source.dims[split.dim].extent));
    return {};
}

Plan plan_of(const Plan& plan, const Split& split, Index extent) {
    const auto cut_in = [&](const Layout& layout) {
        return with_cut_blocks(layout, *place_of(plan, split.dim, layout), split.block, extent);
    };
    Plan cut{cut_in(plan.source), cut_in(plan.target), {}, plan.network};
    for (const Step& step : plan.steps) cut.steps.push_back({step.kind, cut_in(step.layout)});
    return cut;
}

Plan plan_of_piece(const Plan& plan, const Split& split, std::size_t piece) {
    return plan_of(plan, split, indices_of(split, piece).size());
}

Storage storage_of(const Storage& whole, const Split& split, std::size_t piece) {
    const auto place = whole.strides.begin() + static_cast<std::ptrdiff_t>(split.dim);
    Storage cut{whole.offset + indices_of(split, piece).begin * *place, {whole.strides.begin(), place}};
    cut.strides.push_back(split.block * *place);
    cut.strides.insert(cut.strides.end(), place, whole.strides.end());
    return cut;
}

std::optional<Split> split_within(const Plan& plan, Index workspace_bytes_max) {
    const auto whole = common_blocks(plan, index_max);
    if (!whole) return std::nullopt;
    const auto fits = [&](Index extent) {
        const Split blocks{whole->dim, whole->block, {}};
        return assign_buffers(plan_of(plan, blocks, extent), {}).workspace_bytes <= workspace_bytes_max;
    };
    Index low = ceil_divide(whole->block, split_pieces_max);
    if (!fits(low)) return std::nullopt;
    Index high = whole->block;
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return even_split(whole->dim, whole->block, low);
}

}  // namespace reshard
