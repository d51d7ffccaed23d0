#include "tool/files/box_runs.hpp"

#include <algorithm>

#include "src/base/try.hpp"
#include "src/schedule/box_cut.hpp"

namespace reshard::cli {
namespace {

// Trailing dimensions from `first_whole` on are covered whole, so a run spans them and the one before.
std::size_t first_whole(const std::vector<Index>& shape, const Box& box) {
    std::size_t dim = box.size();
    while (dim > 0 && box[dim - 1].size() == shape[dim - 1]) --dim;
    return dim;
}

Index product(const std::vector<Index>& shape, std::size_t first) {
    Index elements = 1;
    for (std::size_t d = first; d < shape.size(); ++d) elements *= shape[d];
    return elements;
}

}  // namespace

Result<void> for_each_piece(const Box& box, Index elements_max,
                            const std::function<Result<void>(const Box&, Index)>& visit) {
    Slabs slabs(box, elements_max);
    Index first = 0;
    while (const Box* piece = slabs.next()) {
        RESHARD_CHECK(visit(*piece, first));
        first += count(*piece);
    }
    return {};
}

Result<void> for_each_piece(const Tile& tile, Index elements_max,
                            const std::function<Result<void>(const Box&, Index)>& visit) {
    if (count(tile) == 0) return {};
    std::size_t split = tile.size();  // the last dimension of several intervals
    while (split > 0 && tile[split - 1].intervals.size() == 1) --split;
    if (split == 0) return for_each_piece(as_box(tile), elements_max, visit);
    --split;
    // Before it one index at a time, in it one interval: such a box lies in one stretch of the dense tile.
    Index outer = 1;
    for (std::size_t d = 0; d < split; ++d) outer *= tile[d].size();
    Index first = 0;
    for (Index number = 0; number < outer; ++number) {
        Box box(tile.size());
        for (std::size_t d = split + 1; d < tile.size(); ++d) box[d] = tile[d].intervals.front();
        Index rest = number;
        for (std::size_t d = split; d-- > 0; rest /= tile[d].size()) {
            const Index index = tile[d].at(rest % tile[d].size());
            box[d] = {index, index + 1};
        }
        for (const Interval& interval : tile[split].intervals) {
            box[split] = interval;
            const auto inside = [&](const Box& piece, Index inner) { return visit(piece, first + inner); };
            RESHARD_CHECK(for_each_piece(box, elements_max, inside));
            first += count(box);
        }
    }
    return {};
}

Result<void> for_each_run(const std::vector<Index>& shape, const Box& box,
                          const std::function<Result<void>(const Run&)>& visit) {
    const Index all = count(box);
    if (all == 0) return {};
    const std::size_t whole = first_whole(shape, box);
    if (whole == 0) return visit({0, 0, all});
    const std::size_t last = whole - 1;
    Run run;
    run.elements = box[last].size() * product(shape, whole);
    std::vector<Index> index;
    for (std::size_t d = 0; d <= last; ++d) index.push_back(box[d].begin);
    for (; run.in_tile < all; run.in_tile += run.elements) {
        run.in_array = 0;
        for (std::size_t d = 0; d <= last; ++d) run.in_array = run.in_array * shape[d] + index[d];
        run.in_array *= product(shape, whole);
        RESHARD_CHECK(visit(run));
        for (std::size_t d = last; d-- > 0;) {
            if (++index[d] < box[d].end) break;
            index[d] = box[d].begin;
        }
    }
    return {};
}

Index run_stride(const std::vector<Index>& shape, const Box& box) {
    const std::size_t whole = first_whole(shape, box);
    return product(shape, whole > 0 ? whole - 1 : 0);
}

Tile reversed(Tile tile) {
    std::reverse(tile.begin(), tile.end());
    return tile;
}

}  // namespace reshard::cli
