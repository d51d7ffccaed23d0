#include "src/schedule/box_cut.hpp"

#include <algorithm>
#include <cassert>

#include "src/base/odometer.hpp"
#include "src/base/try.hpp"

namespace reshard {

namespace {

// Calls visit(slab) for each slab of the box.
template <class Visit>
Result<void> for_each_slab(const Box& box, Index elements_max, const Visit& visit) {
    const Index most = std::max<Index>(elements_max, 1);
    Index row = count(box);  // elements of one index of the dimension that is cut
    if (row == 0) return {};
    if (box.empty()) return visit(box);
    std::size_t cut = 0;  // the dimensions before it are taken index by index
    while ((row /= box[cut].size()) > most) ++cut;
    const Interval whole = box[cut];
    const Index parts = ceil_divide(whole.size(), std::min(whole.size(), most / row));
    std::vector<Index> counts;
    for (std::size_t k = 0; k < cut; ++k) counts.push_back(box[k].size());
    counts.push_back(parts);
    const auto border = [&](Index part) {
        return whole.begin + whole.size() / parts * part + std::min(part, whole.size() % parts);
    };
    Box slab = box;
    return for_each_place(counts, [&](std::span<const Index> place) {
        for (std::size_t k = 0; k < cut; ++k) slab[k] = {box[k].begin + place[k], box[k].begin + place[k] + 1};
        slab[cut] = {border(place[cut]), border(place[cut] + 1)};
        return visit(slab);
    });
}

}  // namespace

std::vector<Box> slabs(const Box& box, Index elements_max) {
    std::vector<Box> all;
    (void)for_each_slab(box, elements_max, [&](const Box& slab) {
        all.push_back(slab);
        return Result<void>();
    });
    return all;
}

Result<void> for_each_piece(const Tile& tile, Index elements_max,
                            const std::function<Result<void>(const Box&, Index)>& visit) {
    if (count(tile) == 0) return {};
    // The last dimension with several intervals is taken interval by interval, those before it index by index.
    std::size_t split = tile.size();
    while (split > 0 && tile[split - 1].intervals.size() == 1) --split;
    std::vector<Index> counts;
    for (std::size_t d = 0; d < split; ++d)
        counts.push_back(d + 1 < split ? tile[d].size() : std::ssize(tile[d].intervals));
    Box box;
    for (const Side& side : tile) box.push_back(side.intervals.front());
    Index first = 0;
    return for_each_place(counts, [&](std::span<const Index> place) {
        for (std::size_t d = 0; d < split; ++d) {
            const Index index = d + 1 < split ? tile[d].at(place[d]) : 0;
            box[d] = d + 1 < split ? Interval{index, index + 1} : tile[d].intervals[static_cast<std::size_t>(place[d])];
        }
        return for_each_slab(box, elements_max, [&](const Box& slab) {
            const Index begin = first;
            first += count(slab);
            return visit(slab, begin);
        });
    });
}

std::vector<Box> without(Box box, const Box& hole) {
    assert(intersect(box, hole) == hole);
    std::vector<Box> rest;
    const auto add = [&](std::size_t k, Interval side) {
        if (side.size() == 0) return;
        rest.push_back(box);
        rest.back()[k] = side;
    };
    // Takes the parts below and above the hole in each dimension, then goes inwards.
    for (std::size_t k = 0; k < box.size(); ++k) {
        add(k, {box[k].begin, hole[k].begin});
        add(k, {hole[k].end, box[k].end});
        box[k] = hole[k];
    }
    return rest;
}

}  // namespace reshard
