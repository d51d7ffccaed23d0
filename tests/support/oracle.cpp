#include "support/oracle.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace reshard::test {

namespace {

Index axis_size(const Spec& spec, const std::string& name) {
    for (const Axis& axis : spec.mesh)
        if (axis.name == name) return axis.size;
    throw std::logic_error("the spec uses the unknown axis " + name);
}

std::string axis_text(const Spec& spec, const SubAxis& axis) {
    if (axis.before == 1 && axis.size == axis_size(spec, axis.axis)) return axis.axis;
    return axis.axis + ":(" + std::to_string(axis.before) + ")" + std::to_string(axis.size);
}

std::string axes_text(const Spec& spec, const std::vector<SubAxis>& axes) {
    if (axes.size() == 1) return axis_text(spec, axes[0]);
    std::string text = "(";
    for (const SubAxis& axis : axes) text += (text.size() > 1 ? "," : "") + axis_text(spec, axis);
    return text + ")";
}

/// The devices in order, each as a dictionary from axis name to coordinate. The last axis turns fastest.
std::vector<std::map<std::string, Index>> all_coordinates(const Spec& spec) {
    std::vector<std::map<std::string, Index>> all(1);
    for (const Axis& axis : spec.mesh) {
        std::vector<std::map<std::string, Index>> longer;
        for (const auto& prefix : all)
            for (Index i = 0; i < axis.size; ++i) {
                longer.push_back(prefix);
                longer.back()[axis.name] = i;
            }
        all = std::move(longer);
    }
    return all;
}

/// For y:(2)3 of a y of size 12 = 2 * 3 * 2: writes the coordinate as nested counters and takes the middle one.
Index sub_coordinate(const Spec& spec, const SubAxis& axis, Index coordinate) {
    const Index inner = axis_size(spec, axis.axis) / (axis.before * axis.size);
    Index count = 0;
    for (Index outer = 0; outer < axis.before; ++outer)
        for (Index middle = 0; middle < axis.size; ++middle)
            for (Index i = 0; i < inner; ++i)
                if (count++ == coordinate) return middle;
    throw std::logic_error("a coordinate past the end of its axis");
}

Index number(const Spec& spec, const std::vector<SubAxis>& axes, const std::map<std::string, Index>& coordinates) {
    Index value = 0;
    for (const SubAxis& axis : axes) value = value * axis.size + sub_coordinate(spec, axis, coordinates.at(axis.axis));
    return value;
}

/// JAX's rule: cuts [0, extent) into pieces of ceil(extent / parts) from the front. Pieces past the end are empty.
Interval cut(Index extent, Index parts, Index which) {
    Index piece = 0;
    while (piece * parts < extent) ++piece;
    Interval result{extent, extent};
    if (which * piece < extent) result = {which * piece, std::min(extent, (which + 1) * piece)};
    return result;
}

/// numpy's rule for array_split: counts the parts out, the longer ones first.
Interval split(Index extent, Index parts, Index which) {
    Interval result;
    for (Index part = 0; part <= which; ++part)
        result = {result.end, result.end + extent / parts + (part < extent % parts ? 1 : 0)};
    return result;
}

/// The only piece of a shard, from the list of piece ends. Empty, and at the end, if the shard has no piece.
Interval piece_of(const Dim& dim, Index shard) {
    Interval found{dim.extent, dim.extent};
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        if (piece.shard == shard) {
            if (found.size() > 0) throw std::logic_error("a shard of several pieces is no box");
            found = {begin, piece.end};
        }
        begin = piece.end;
    }
    return found;
}

Index digits(const AtomList& atoms, Index device) {
    Index value = 0;
    for (const Atom& atom : atoms) value = value * atom.size + (device / atom.stride) % atom.size;
    return value;
}

/// The position of a device in the mesh. A plan may change the list of devices on the way.
Index listed_at(const Mesh& mesh, Index device) {
    const auto list = mesh.devices.devices();
    if (list.empty()) return device;
    const auto found = std::ranges::find(list, device);
    if (found == list.end()) throw std::logic_error("a mesh of other devices than 0, 1, ...");
    return found - list.begin();
}

Combine combination(Reduction reduction) {
    static const std::map<Reduction, Combine> combinations = {{Reduction::sum, Combine::sum},
                                                              {Reduction::max, Combine::max},
                                                              {Reduction::min, Combine::min},
                                                              {Reduction::prod, Combine::prod},
                                                              {Reduction::avg, Combine::sum}};
    return combinations.at(reduction);
}

}  // namespace

std::string mesh_text(const Spec& spec) {
    std::string text;
    for (const Axis& axis : spec.mesh) text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
    return text;
}

std::string layout_text(const Spec& spec) {
    std::string text(name(spec.dtype));
    text += "[";
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
        if (i > 0) text += ",";
        text += std::to_string(spec.dims[i].extent);
        if (!spec.dims[i].axes.empty()) text += "@" + axes_text(spec, spec.dims[i].axes);
    }
    text += "]";
    if (spec.unreduced.empty()) return text;
    static const std::map<Reduction, std::string> words = {{Reduction::sum, "U"},
                                                           {Reduction::max, "max"},
                                                           {Reduction::min, "min"},
                                                           {Reduction::prod, "prod"},
                                                           {Reduction::avg, "avg"}};
    return text + "{" + words.at(spec.reduction) + ":" + axes_text(spec, spec.unreduced) + "}";
}

Layout layout_of(const Spec& spec) {
    std::vector<Index> extents;
    P axes;
    for (const SpecDim& dim : spec.dims) {
        extents.push_back(dim.extent);
        PartitionEntry entry;
        for (const SubAxis& axis : dim.axes) entry.axes.push_back(axis_text(spec, axis));
        axes.push_back(entry);
    }
    std::vector<std::string> sums;
    for (const SubAxis& axis : spec.unreduced) sums.push_back(axis_text(spec, axis));
    auto made = make_layout(Mesh(spec.mesh), spec.dtype, extents, axes, sums);
    if (!made) throw std::logic_error("make_layout refuses " + layout_text(spec) + ": " + made.error().message);
    made->reduction = spec.reduction;
    return *made;
}

std::vector<Holding> holdings(const Spec& spec) {
    std::vector<Holding> held;
    // Summands are numbered with the most major axis of the mesh first, in whatever order they were written.
    std::vector<SubAxis> sums;
    for (const Axis& axis : spec.mesh) {
        std::vector<SubAxis> mine;
        for (const SubAxis& sub : spec.unreduced)
            if (sub.axis == axis.name) mine.push_back(sub);
        std::ranges::sort(mine, {}, &SubAxis::before);
        sums.insert(sums.end(), mine.begin(), mine.end());
    }
    for (const auto& coordinates : all_coordinates(spec)) {
        Holding holding;
        for (const SpecDim& dim : spec.dims)
            holding.tile.push_back(cut(dim.extent, shards(dim), number(spec, dim.axes, coordinates)));
        holding.summand = number(spec, sums, coordinates);
        holding.combine = combination(spec.reduction);
        held.push_back(std::move(holding));
    }
    return held;
}

std::vector<Holding> holdings(const Layout& layout) {
    Index devices = 1;
    for (const Axis& axis : layout.mesh.axes) devices *= axis.size;
    std::vector<Holding> held;
    for (Index device = 0; device < devices; ++device) {
        const Index position = listed_at(layout.mesh, device);
        Holding holding;
        for (const Dim& dim : layout.dims) {
            Index parts = 1;
            for (const Atom& atom : dim.atoms) parts *= atom.size;
            const Index shard = digits(dim.atoms, position);
            holding.tile.push_back(dim.balanced         ? split(dim.extent, parts, shard)
                                   : dim.pieces.empty() ? cut(dim.extent, parts, shard)
                                                        : piece_of(dim, shard));
        }
        holding.summand = digits(layout.unreduced, position);
        holding.combine = combination(layout.reduction);
        held.push_back(std::move(holding));
    }
    return held;
}

Index shards(const SpecDim& dim) {
    Index parts = 1;
    for (const SubAxis& axis : dim.axes) parts *= axis.size;
    return parts;
}

Index devices(const Spec& spec) {
    Index product = 1;
    for (const Axis& axis : spec.mesh) product *= axis.size;
    return product;
}

Index summands(const std::vector<Holding>& held) {
    Index most = 0;
    for (const Holding& holding : held) most = std::max(most, holding.summand);
    return most + 1;
}

Index elements(const Box& box) {
    Index product = 1;
    for (const Interval& side : box) product *= side.end - side.begin;
    return product;
}

Index overlap(const Box& a, const Box& b) {
    Index product = 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        product *= std::max<Index>(0, std::min(a[i].end, b[i].end) - std::max(a[i].begin, b[i].begin));
    return product;
}

Index largest_tile(const std::vector<Holding>& held) {
    Index most = 0;
    for (const Holding& holding : held) most = std::max(most, elements(holding.tile));
    return most;
}

Index foreign(const std::vector<Holding>& before, const std::vector<Holding>& after, std::size_t device) {
    const Holding& has = before[device];
    const Holding& wants = after[device];
    return elements(wants.tile) - (has.summand == wants.summand ? overlap(has.tile, wants.tile) : 0);
}

Index most_foreign(const std::vector<Holding>& before, const std::vector<Holding>& after) {
    Index most = 0;
    for (std::size_t device = 0; device < before.size(); ++device)
        most = std::max(most, foreign(before, after, device));
    return most;
}

std::vector<Index> stripe_limits(const std::vector<Holding>& before, const std::vector<Holding>& after) {
    std::vector<Index> limits;
    // Tiles of one layout are equal or disjoint, so a device that does not hold the tile holds no part of it.
    for (const Holding& mine : before) {
        Index holders = 0;
        Index wanted = 0;
        for (std::size_t other = 0; other < before.size(); ++other) {
            if (before[other] == mine)
                ++holders;
            else if (after[other].summand == mine.summand)
                wanted += overlap(mine.tile, after[other].tile);
        }
        limits.push_back((wanted + holders - 1) / holders);
    }
    return limits;
}

}  // namespace reshard::test
