#include "src/schedule/box_cut.hpp"

#include <algorithm>

namespace reshard {

std::vector<Box> slabs(const Box& box, Index elements_max) {
    std::size_t dim = 0;  // the outermost whose slabs are small enough
    Index slab = count(box);
    while (dim < box.size()) {
        slab /= box[dim].size();
        if (slab <= std::max<Index>(elements_max, 1)) break;
        ++dim;
    }
    if (dim == box.size()) return {box};
    const Index extent = box[dim].size();
    const Index parts = ceil_divide(extent, std::min(extent, std::max<Index>(elements_max / slab, 1)));
    std::vector<Box> boxes;
    Box part = box;
    for (std::size_t k = 0; k < dim; ++k) part[k].end = part[k].begin + 1;
    while (true) {
        for (Index i = 0; i < parts; ++i) {
            const auto border = [&](Index at) {
                return box[dim].begin + extent / parts * at + std::min(at, extent % parts);
            };
            part[dim] = {border(i), border(i + 1)};
            boxes.push_back(part);
        }
        std::size_t k = dim;
        while (k-- > 0) {
            part[k] = {part[k].end, part[k].end + 1};
            if (part[k].end <= box[k].end) break;
            part[k] = {box[k].begin, box[k].begin + 1};
        }
        if (k > dim) return boxes;  // all dimensions before it have come round
    }
}

}  // namespace reshard
