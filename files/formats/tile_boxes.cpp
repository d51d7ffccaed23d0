#include "files/formats/tile_boxes.hpp"

#include "files/formats/safetensors.hpp"

namespace reshard::files {

std::vector<std::optional<std::size_t>> real_dims(const Layout& layout, std::span<const Index> shape) {
    std::vector<std::optional<std::size_t>> real;
    std::size_t next = 0;
    for (const Dim& dim : layout.dims) {
        const bool known = next < shape.size() && dim.extent == shape[next];
        real.push_back(known ? std::optional(next++) : std::nullopt);
    }
    return real;
}

std::vector<Index> real_shape(const Layout& layout, std::span<const Index> shape) {
    return layout.dims.size() < shape.size() ? reshard::shape(layout) : std::vector<Index>(shape.begin(), shape.end());
}

Tile real_tile(const Layout& layout, std::span<const Index> shape, Index rank) {
    Tile held = tile(layout, rank);
    if (layout.dims.size() < shape.size()) return held;
    Tile real;
    const auto dims = real_dims(layout, shape);
    for (std::size_t k = 0; k < dims.size(); ++k) {
        if (!dims[k] && held[k].size() == 0) return nothing(shape.size());  // its home is another rank
        if (dims[k]) real.push_back(held[k]);
    }
    return real;
}

std::vector<StoredBox> boxes_in_file(const Tile& tile, Index file, Index offset, Index element_bytes) {
    const std::vector<Index> strides = dense_strides(extents(tile), element_bytes);
    std::vector<StoredBox> boxes;
    for (Box& box : boxes_of(tile)) {
        Index at = offset;
        for (std::size_t k = 0; k < box.size(); ++k) {
            Index own = 0;
            for (const Interval& interval : tile[k].intervals)
                if (interval.begin < box[k].begin) own += interval.size();
            at += own * strides[k];
        }
        boxes.push_back({std::move(box), file, at, strides});
    }
    return boxes;
}

}  // namespace reshard::files
