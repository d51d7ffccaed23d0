#include "src/model/part_ends.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reshard/planner/view.hpp"
#include "src/base/try.hpp"
#include "src/model/rows.hpp"

namespace reshard {

namespace {

// Puts the dimensions of a part in its order.
Result<Layout> ordered(Layout array, std::span<const std::size_t> order) {
    if (order.empty()) return array;
    std::vector<Dim> dims;
    for (std::size_t k = 0; k < array.dims.size(); ++k)
        if (order.size() != array.dims.size() || std::ranges::count(order, k) != 1)
            return fail(Code::mismatch, "the order of a part does not name each dimension once");
    for (const std::size_t k : order) dims.push_back(std::move(array.dims[k]));
    array.dims = std::move(dims);
    return array;
}

Index own_indices_before(const Side& side, Index index) {
    Index before = 0;
    for (const Interval& interval : side.intervals)
        before += std::clamp(index, interval.begin, interval.end) - interval.begin;
    return before;
}

// Gives both arrays the same dimensions. If only one end has a dimension of extent 1, the other end gets it too.
// Returns false if other extents differ.
bool align(PartEnd& source, PartEnd& target) {
    const PartEnd left = std::exchange(source, {Layout(source.array), source.part});
    const PartEnd right = std::exchange(target, {Layout(target.array), target.part});
    source.array.dims.clear();
    target.array.dims.clear();
    const auto take = [](PartEnd& end, const PartEnd& from, std::size_t& next, bool there) {
        end.dims.push_back(there ? from.dims[next] : std::nullopt);
        end.array.dims.push_back(there ? from.array.dims[next++] : Dim(1));
    };
    const std::vector<Dim>& ours = left.array.dims;
    const std::vector<Dim>& theirs = right.array.dims;
    for (std::size_t i = 0, j = 0; i < ours.size() || j < theirs.size();) {
        const bool both = i < ours.size() && j < theirs.size() && ours[i].extent == theirs[j].extent;
        const bool from_left = both || (i < ours.size() && ours[i].extent == 1);
        const bool from_right = both || (!from_left && j < theirs.size() && theirs[j].extent == 1);
        if (!from_left && !from_right) return false;
        take(source, left, i, from_left);
        take(target, right, j, from_right);
    }
    return true;
}

}  // namespace

Result<Layout> layout_of(const TensorPart& part) {
    Layout inner = *part.layout;
    if (!part.box) return ordered(std::move(inner), part.order);
    if (part.box->size() != inner.dims.size())
        return fail(Code::mismatch,
                    fmt::format("the box has {} dimensions, the tensor {}", part.box->size(), inner.dims.size()));
    for (std::size_t k = 0; k < inner.dims.size(); ++k) {
        const Interval& cut = (*part.box)[k];
        Dim& dim = inner.dims[k];
        if (cut.begin < 0 || cut.end < cut.begin || cut.end > dim.extent)
            return fail(Code::mismatch, fmt::format("the box has indices {}:{} of dimension {}, which has {}",
                                                    cut.begin, cut.end, k, dim.extent));
        if (cut.size() == dim.extent) continue;
        std::vector<Dim::Piece> pieces;
        for (const Dim::Piece& piece : pieces_of(dim)) {
            const Index end = std::clamp(piece.end, cut.begin, cut.end) - cut.begin;
            if (end > (pieces.empty() ? 0 : pieces.back().end)) pieces.push_back({end, piece.shard});
        }
        dim = Dim(cut.size(), dim.atoms, std::move(pieces));
        make_canonical(dim);
    }
    return ordered(std::move(inner), part.order);
}

Storage PartEnd::storage_on(const Tile& held, Index rank) const {
    if (!part) return row_major(held);
    const Tile whole = tile(*part->layout, rank);
    const Storage dense = row_major(whole);
    Storage storage;
    for (std::size_t k = 0; part->box && k < part->box->size(); ++k)
        storage.offset += own_indices_before(whole[k], (*part->box)[k].begin) * dense.strides[k];
    for (const auto& dim : dims) storage.strides.push_back(dim ? dense.strides[*dim] : 0);
    return storage;
}

Result<PartEnd> end_of(const TensorPart& part) {
    RESHARD_TRY(auto& array, layout_of(part));
    PartEnd end{std::move(array)};
    for (std::size_t k = 0; k < end.array.dims.size(); ++k) end.dims.push_back(part.order.empty() ? k : part.order[k]);
    if (part.box || !part.order.empty()) end.part = part;
    return end;
}

Result<PartEnds> ends_of(const PartProblem& parts) {
    for (const TensorPart* part : {&parts.source, &parts.target}) RESHARD_CHECK(copies_only(*part->layout));
    RESHARD_TRY(auto& source, end_of(parts.source));
    RESHARD_TRY(auto& target, end_of(parts.target));
    const DType from = source.array.dtype;
    const DType to = target.array.dtype;
    PartEnds ends{source, target};
    if (from == to && align(ends.source, ends.target)) return ends;
    if (source.part || target.part)
        return fail(Code::mismatch, "the parts differ in element type, or in other extents than 1");
    if (from != to)
        return fail(Code::mismatch, fmt::format("element types differ: {} and {}; rows move bytes and cast nothing",
                                                name(from), name(to)));
    RESHARD_TRY(auto& views, in_common_view(source.array, target.array));
    return PartEnds{{std::move(views.first)}, {std::move(views.second)}};
}

}  // namespace reshard
