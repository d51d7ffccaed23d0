#include "src/model/tile_places.hpp"

#include "reshard/planner/tile.hpp"

namespace reshard {

TilePlaces::TilePlaces(const Layout& layout, Index rank) {
    const Tile held = tile(layout, rank);
    std::size_t count = held.size();
    unit_ = size_of(layout.dtype);
    while (count > 0 && count <= layout.dims.size() && held[count - 1].size() == layout.dims[count - 1].extent)
        unit_ *= layout.dims[--count].extent;
    Index stride = unit_;
    for (std::size_t k = std::min(count, layout.dims.size()); k-- > 0;) {
        Dimension dim{stride, {0}, {}};
        for (const Interval& interval : held[k].intervals) {
            dim.starts.push_back(dim.starts.back() + interval.size());
            dim.begins.push_back(interval.begin);
        }
        dims_.insert(dims_.begin(), std::move(dim));
        stride *= layout.dims[k].extent;
    }
    if (dims_.empty()) end_ = unit_;
}

void TilePlaces::find(Index offset) {
    Index index = offset / unit_;
    position_ = 0;
    for (std::size_t k = dims_.size(); k-- > 0;) {
        const Dimension& dim = dims_[k];
        const Index own = index % dim.starts.back();
        index /= dim.starts.back();
        const auto next = std::upper_bound(dim.starts.begin(), dim.starts.end(), own);
        const auto interval = static_cast<std::size_t>(next - dim.starts.begin() - 1);
        const Index inside = own - dim.starts[interval];
        if (k + 1 == dims_.size()) {
            begin_ = (offset / unit_ - inside) * unit_;
            end_ = begin_ + (*next - dim.starts[interval]) * unit_;
            position_ += dim.begins[interval] * dim.stride;
        } else {
            position_ += (dim.begins[interval] + inside) * dim.stride;
        }
    }
}

}  // namespace reshard
