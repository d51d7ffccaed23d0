#include "files/engine/stored_view.hpp"

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

// The extents that each dimension of `shape` becomes. A dimension of one index joins the dimension that follows it. The
// last part has the dimensions of one index behind all others.
std::vector<std::vector<Index>> extents_of(std::span<const Index> shape, std::span<const Index> view) {
    std::vector<std::vector<Index>> parts;
    std::size_t next = 0;
    for (const Index extent : shape) {
        std::vector<Index>& own = parts.emplace_back();
        Index product = 1;
        do {
            own.push_back(view[next]);
            product *= view[next++];
        } while (product < extent && product > 0 && next < view.size());
    }
    parts.emplace_back(view.begin() + static_cast<std::ptrdiff_t>(next), view.end());
    return parts;
}

}  // namespace

namespace {

// The runs of a box, as boxes of the flattened tensor. Neighbouring dimensions are one run if the box has all indices
// of the inner one, and if the file has no gap between them.
std::vector<StoredBox> runs_of(const StoredBox& stored, std::span<const Index> shape) {
    std::vector<Index> flat(shape.size(), 1);  // elements of one index of each dimension
    for (std::size_t k = shape.size(); k-- > 1;) flat[k - 1] = flat[k] * shape[k];
    std::size_t outer = shape.size() - 1;
    while (outer > 0 && stored.box[outer].size() == shape[outer] &&
           stored.strides[outer - 1] == stored.strides[outer] * shape[outer])
        --outer;
    std::vector<Index> counts;
    for (std::size_t k = 0; k < outer; ++k) counts.push_back(stored.box[k].size());
    const Index elements = stored.box[outer].size() * flat[outer];
    std::vector<StoredBox> runs;
    (void)for_each_place(counts, [&](std::span<const Index> place) -> Result<void> {
        Index first = 0;
        Index offset = stored.offset;
        for (std::size_t k = 0; k < shape.size(); ++k) {
            const Index at = k < outer ? place[k] : 0;
            first += (stored.box[k].begin + at) * flat[k];
            offset += at * stored.strides[k];
        }
        runs.push_back({{{first, first + elements}}, stored.file, offset, {stored.strides.back()}});
        return {};
    });
    return runs;
}

}  // namespace

std::vector<StoredBox> in_view(const StoredBox& stored, std::span<const Index> shape, std::span<const Index> view) {
    if (view.size() == 1 && shape.size() > 1) return runs_of(stored, shape);
    const std::vector<std::vector<Index>> extents = extents_of(shape, view);
    std::vector<std::vector<Sides>> sides;
    std::vector<Index> counts;
    StoredBox made{{}, stored.file, stored.offset, {}};
    for (std::size_t k = 0; k < shape.size(); ++k) {
        sides.push_back(split(stored.box[k].begin, stored.box[k].end, extents[k]));
        counts.push_back(std::ssize(sides.back()));
        Index stride = stored.strides[k];
        for (const Index extent : extents[k]) stride *= extent;
        for (const Index extent : extents[k]) made.strides.push_back(stride /= extent);
    }
    made.strides.resize(view.size(), 0);
    std::vector<StoredBox> boxes;
    (void)for_each_place(counts, [&](std::span<const Index> place) -> Result<void> {
        StoredBox box = made;
        for (std::size_t k = 0; k < shape.size(); ++k) {
            const Sides& side = sides[k][static_cast<std::size_t>(place[k])];
            box.box.insert(box.box.end(), side.box.begin(), side.box.end());
            box.offset += (side.first - stored.box[k].begin) * stored.strides[k];
        }
        box.box.resize(view.size(), {0, 1});
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
