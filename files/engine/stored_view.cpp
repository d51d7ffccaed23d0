#include "files/engine/stored_view.hpp"

#include <algorithm>

#include "src/base/odometer.hpp"

namespace reshard::files {

namespace {

// A part of one side, in the dimensions that the side's dimension becomes.
struct Sides {
    Box box;
    Index first = 0;  // index of its first element in the dimension
};

// The indices from begin to end of a dimension that becomes dimensions of these extents.
std::vector<Sides> split(Index begin, Index end, std::span<const Index> extents) {
    if (extents.size() <= 1) return {{Box(extents.size(), {begin, end}), begin}};
    Index row = 1;
    for (const Index extent : extents.subspan(1)) row *= extent;
    std::vector<Sides> all;
    const auto add = [&](Index rows_begin, Index rows_end, Index from, Index to) {
        if (rows_begin >= rows_end || from >= to) return;
        for (Sides& inner : split(from, to, extents.subspan(1))) {
            inner.box.insert(inner.box.begin(), {rows_begin, rows_end});
            inner.first += rows_begin * row;
            all.push_back(std::move(inner));
        }
    };
    const Index first = begin / row;
    const Index last = end / row;
    if (first == last) {
        add(first, first + 1, begin % row, end % row);
        return all;
    }
    const bool whole = begin % row == 0;
    if (!whole) add(first, first + 1, begin % row, row);
    add(whole ? first : first + 1, last, 0, row);
    add(last, last + 1, 0, end % row);
    return all;
}

// Dimensions of a shape and of a view that hold as many elements. The shortest such runs.
struct Group {
    std::size_t dims = 0;
    std::size_t views = 0;
};

std::vector<Group> groups_of(std::span<const Index> shape, std::span<const Index> view) {
    std::vector<Group> groups;
    while (!shape.empty() || !view.empty()) {
        Group group;
        Index left = 1;
        Index right = 1;
        do {
            if (group.dims < shape.size() && (left <= right || group.views == view.size()))
                left *= shape[group.dims++];
            else
                right *= view[group.views++];
        } while (left != right);
        shape = shape.subspan(group.dims);
        view = view.subspan(group.views);
        groups.push_back(group);
    }
    return groups;
}

// Consecutive indices of merged dimensions. In the file they have the stride of the last dimension.
struct Run {
    Interval indices;
    Index offset = 0;  // of its first byte, from the first byte of the box
};

// The indices of a box in the dimension that merges these dimensions.
std::vector<Run> merged(std::span<const Interval> box, std::span<const Index> strides, std::span<const Index> shape) {
    if (box.empty()) return {{{0, 1}, 0}};
    if (box.size() == 1) return {{box[0], 0}};
    Index row = 1;
    for (const Index extent : shape.subspan(1)) row *= extent;
    const std::vector<Run> inner = merged(box.subspan(1), strides.subspan(1), shape.subspan(1));
    const bool whole_rows = inner.size() == 1 && inner[0].indices.size() == row;
    if (whole_rows && strides[0] == row * strides.back()) return {{{box[0].begin * row, box[0].end * row}, 0}};
    std::vector<Run> runs;
    for (Index i = box[0].begin; i < box[0].end; ++i)
        for (const Run& run : inner)
            runs.push_back({{i * row + run.indices.begin, i * row + run.indices.end},
                            (i - box[0].begin) * strides[0] + run.offset});
    return runs;
}

}  // namespace

std::vector<StoredBox> in_view(const StoredBox& stored, std::span<const Index> shape, std::span<const Index> view) {
    if (std::ranges::count(shape, 0) > 0) return {};
    std::vector<std::vector<std::pair<Box, Index>>> sides;  // of each group: a box in the view, and its first byte
    std::vector<Index> counts;
    StoredBox made{{}, stored.file, stored.offset, {}};
    std::size_t dim = 0;
    for (const auto& [dims, views] : groups_of(shape, view)) {
        const std::span<const Index> strides = std::span(stored.strides).subspan(dim, dims);
        const std::span<const Index> extents = view.subspan(made.strides.size(), views);
        const Index stride = strides.empty() ? 0 : strides.back();
        auto& own = sides.emplace_back();
        for (const Run& run : merged(std::span(stored.box).subspan(dim, dims), strides, shape.subspan(dim, dims)))
            for (Sides& part : split(run.indices.begin, run.indices.end, extents))
                own.emplace_back(std::move(part.box), run.offset + (part.first - run.indices.begin) * stride);
        counts.push_back(std::ssize(own));
        Index inner = 1;
        for (const Index extent : extents) inner *= extent;
        for (const Index extent : extents) made.strides.push_back((inner /= extent) * stride);
        dim += dims;
    }
    std::vector<StoredBox> boxes;
    (void)for_each_place(counts, [&](std::span<const Index> place) -> Result<void> {
        StoredBox box = made;
        for (std::size_t k = 0; k < sides.size(); ++k) {
            const auto& [part, offset] = sides[k][static_cast<std::size_t>(place[k])];
            box.box.insert(box.box.end(), part.begin(), part.end());
            box.offset += offset;
        }
        boxes.push_back(std::move(box));
        return {};
    });
    return boxes;
}

StoredTensor in_view(const StoredTensor& tensor, std::span<const Index> view) {
    StoredTensor made{tensor.name, tensor.dtype, {view.begin(), view.end()}, {}, tensor.fill};
    for (const StoredBox& stored : tensor.boxes)
        for (StoredBox& box : in_view(stored, tensor.shape, view)) made.boxes.push_back(std::move(box));
    return made;
}

}  // namespace reshard::files
