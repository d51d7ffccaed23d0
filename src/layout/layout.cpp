#include "reshard/layout.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

Index size_of(DType dtype) { return tables::row(dtype).bytes; }
std::string_view name(DType dtype) { return tables::row(dtype).name; }
bool reducible(DType dtype) { return tables::row(dtype).combines; }
bool is_complex(DType dtype) { return tables::row(dtype).kind == tables::Kind::complex; }
bool is_floating(DType dtype) { return tables::row(dtype).kind == tables::Kind::floating && reducible(dtype); }

Result<DType> parse_dtype(std::string_view text) {
    if (text == "pred") return DType::boolean;  // XLA's name
    for (const auto column : {&tables::DTypeRow::name, &tables::DTypeRow::long_name})
        if (const auto found = tables::find_dtype(column, text)) return *found;
    return fail(Code::syntax, fmt::format("'{}' is not an element type", text.substr(0, 40)));
}

namespace {

constexpr std::array<std::string_view, 5> reduction_names = {"sum", "max", "min", "prod", "avg"};

}  // namespace

std::string_view name(Reduction reduction) { return reduction_names[static_cast<std::size_t>(reduction)]; }

Combine combine_of(Reduction reduction) {
    switch (reduction) {
        case Reduction::max:
            return Combine::max;
        case Reduction::min:
            return Combine::min;
        case Reduction::prod:
            return Combine::prod;
        case Reduction::sum:
        case Reduction::avg:
            break;
    }
    return Combine::sum;
}

Result<Reduction> parse_reduction(std::string_view text) {
    for (const Reduction reduction : all_reductions)
        if (text == name(reduction)) return reduction;
    return fail(Code::syntax, fmt::format("'{}' is not a reduction: sum, max, min, prod or avg", text.substr(0, 40)));
}

Result<void> can_reduce(DType dtype, Reduction reduction) {
    if (!reducible(dtype))
        return fail(Code::unsupported, fmt::format("{} is bytes only and cannot be reduced", name(dtype)));
    const bool orders = reduction == Reduction::max || reduction == Reduction::min;
    if (orders && is_complex(dtype))
        return fail(Code::unsupported,
                    fmt::format("there is no {} of {}: complex numbers have no order", name(reduction), name(dtype)));
    if (reduction == Reduction::avg && !is_floating(dtype) && !is_complex(dtype))
        return fail(Code::unsupported, fmt::format("there is no avg of {}: it would be rounded", name(dtype)));
    return {};
}

namespace {

Result<void> validate_cut(const Dim& dim) {
    if (dim.pieces.empty() && dim.balanced && !balanced(dim.extent, dim.atoms).balanced)
        return fail(Code::layout,
                    fmt::format("{} indices on {} shards are marked as balanced, but ceil-div cuts the same",
                                dim.extent, shard_count(dim)));
    if (dim.pieces.empty()) return {};
    if (dim.balanced) return fail(Code::layout, "a balanced dimension has pieces");
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        if (piece.end <= begin || piece.end > dim.extent)
            return fail(Code::layout, "pieces of a dimension do not ascend");
        if (piece.shard < 0 || piece.shard >= shard_count(dim))
            return fail(Code::layout, fmt::format("a piece belongs to shard {} of {}", piece.shard, shard_count(dim)));
        begin = piece.end;
    }
    if (begin != dim.extent) return fail(Code::layout, "pieces do not cover their dimension");
    const auto same = [](const Dim::Piece& a, const Dim::Piece& b) { return a.shard == b.shard; };
    const bool merged = std::ranges::adjacent_find(dim.pieces, same) == dim.pieces.end();
    // Other cuts than lists have ascending shards.
    Dim canonical;
    const bool ascend = std::ranges::is_sorted(dim.pieces, {}, &Dim::Piece::shard);
    if (ascend) make_canonical(canonical = dim);
    if (!merged || (ascend && canonical != dim))
        return fail(Code::layout, "the pieces of a dimension are not canonical");
    return {};
}

}  // namespace

Result<void> validate(const Layout& layout) {
    RESHARD_CHECK(validate(layout.mesh));
    const Index devices = device_count(layout.mesh);
    AtomList all = layout.unreduced;
    Index elements = 1;
    for (const Dim& dim : layout.dims) {
        if (dim.extent < 0) return fail(Code::layout, fmt::format("a dimension has extent {}", dim.extent));
        if (!is_canonical(dim.atoms)) return fail(Code::layout, "a dimension's atoms are not canonical");
        RESHARD_CHECK(validate_cut(dim));
        all.insert(all.end(), dim.atoms.begin(), dim.atoms.end());
        const auto product = checked_multiply(elements, std::max<Index>(dim.extent, 1));
        if (!product) return fail(Code::overflow, "the array has more elements than 64 bits can count");
        elements = *product;
    }
    if (!checked_multiply(elements, size_of(layout.dtype)))
        return fail(Code::overflow, "the array has more bytes than 64 bits can count");
    if (!is_canonical(layout.unreduced) || !std::ranges::is_sorted(layout.unreduced, std::greater{}, &Atom::stride))
        return fail(Code::layout, "the unreduced atoms are not a canonical set");
    for (const Atom& atom : all) {
        const auto top = atom.size < 1 || atom.stride < 1 ? std::nullopt : checked_multiply(atom.size, atom.stride);
        if (!top || devices % *top != 0)
            return fail(Code::layout,
                        fmt::format("atom ({}, {}) is no digit of {} devices", atom.size, atom.stride, devices));
    }
    if (!disjoint(all)) return fail(Code::layout, "an axis, or parts of it that overlap, is used twice");
    if (layout.unreduced.empty()) return {};
    const bool whole = layout.summed == 1;
    if (!whole && (layout.reduction != Reduction::avg || layout.summed < 1 || layout.summed >= summand_count(layout) ||
                   summand_count(layout) % layout.summed != 0))
        return fail(Code::layout, fmt::format("{} of {} summands of a {} cannot count as one", layout.summed,
                                              summand_count(layout), name(layout.reduction)));
    return can_reduce(layout.dtype, layout.reduction);
}

std::vector<Index> shape(const Layout& layout) {
    std::vector<Index> extents;
    for (const Dim& dim : layout.dims) extents.push_back(dim.extent);
    return extents;
}

Index device_count(const Layout& layout) { return device_count(layout.mesh); }
Index summand_count(const Layout& layout) { return combinations(layout.unreduced); }

Index divisor(const Layout& layout) {
    const bool averages = !layout.unreduced.empty() && layout.reduction == Reduction::avg;
    return averages ? summand_count(layout) / layout.summed : 1;
}

void divide_by(Layout& layout, Index by) {
    assert(by >= 1 && summand_count(layout) % by == 0);
    layout.reduction = by == 1 ? Reduction::sum : Reduction::avg;
    layout.summed = by == 1 ? 1 : summand_count(layout) / by;
}

AtomList used_atoms(const Layout& layout) {
    AtomList all = layout.unreduced;
    for (const Dim& dim : layout.dims) all.insert(all.end(), dim.atoms.begin(), dim.atoms.end());
    return as_set(std::move(all));
}

bool divides(const Layout& layout) {
    return std::ranges::all_of(layout.dims, [](const Dim& dim) { return divides(dim); });
}

bool has_pieces(const Layout& layout) {
    return std::ranges::any_of(layout.dims, [](const Dim& dim) { return !by_ceil_div(dim); });
}

Tile tile(const Layout& layout, Index device) {
    const auto position = position_of(layout.mesh, device);
    if (!position) return nothing(layout.dims.size());
    Tile sides;
    sides.reserve(layout.dims.size());
    for (const Dim& dim : layout.dims) sides.push_back(side(dim, value_of(dim.atoms, *position)));
    return sides;
}

Index summand(const Layout& layout, Index device) {
    return value_of(layout.unreduced, position_of(layout.mesh, device).value_or(0));
}

std::vector<Index> group_of(const Layout& layout, std::span<const Atom> atoms, Index device) {
    assert(position_of(layout.mesh, device));
    std::vector<Index> members = group_of(atoms, *position_of(layout.mesh, device));
    for (Index& member : members) member = device_at(layout.mesh, member);
    return members;
}

// Makes no sides, since a small move asks for two shapes.
std::vector<Index> tile_shape(const Layout& layout, Index device) {
    const auto position = position_of(layout.mesh, device);
    if (!position) return extents(nothing(layout.dims.size()));
    std::vector<Index> shape;
    shape.reserve(layout.dims.size());
    for (const Dim& dim : layout.dims) {
        const Index shard = value_of(dim.atoms, *position);
        shape.push_back(dim.pieces.empty() ? interval(dim, shard).size() : side(dim, shard).size());
    }
    return shape;
}

std::vector<Index> tile_offset(const Layout& layout, Index device) {
    std::vector<Index> first;
    for (const Side& side : tile(layout, device)) {
        if (first.size() == layout.dims.size()) break;  // a layout of rank 0 has no sides
        first.push_back(side.intervals.empty() ? 0 : side.intervals.front().begin);
    }
    return first;
}

std::size_t tile_count(const Layout& layout, Index device) {
    return static_cast<std::size_t>(count(tile(layout, device)));
}

Index tile_elements(const Layout& layout) {
    Index elements = 1;
    for (const Dim& dim : layout.dims) elements *= tile_extent(dim);
    return elements;
}

Index tile_bytes(const Layout& layout) { return tile_elements(layout) * size_of(layout.dtype); }

Index global_bytes(const Layout& layout) {
    Index bytes = size_of(layout.dtype);
    for (const Dim& dim : layout.dims) bytes *= dim.extent;
    return bytes;
}

Result<void> same_array(const Layout& a, const Layout& b) {
    if (a.dtype != b.dtype)
        return fail(Code::mismatch, fmt::format("element types differ: {} and {}", name(a.dtype), name(b.dtype)));
    if (a.dims.size() != b.dims.size())
        return fail(Code::mismatch, fmt::format("ranks differ: {} and {}", a.dims.size(), b.dims.size()));
    for (std::size_t i = 0; i < a.dims.size(); ++i)
        if (a.dims[i].extent != b.dims[i].extent)
            return fail(Code::mismatch,
                        fmt::format("shapes differ in dimension {}: {} and {}", i, a.dims[i].extent, b.dims[i].extent));
    return {};
}

bool same_summands(const Layout& a, const Layout& b) {
    return a.unreduced == b.unreduced && (a.unreduced.empty() || (a.reduction == b.reduction && a.summed == b.summed));
}

bool operator==(const Layout& a, const Layout& b) {
    return a.dtype == b.dtype && a.mesh == b.mesh && a.dims == b.dims && same_summands(a, b);
}

bool equivalent(const Layout& a, const Layout& b) {
    return same_array(a, b).has_value() && same_order(a.mesh, b.mesh) && same_summands(a, b) && a.dims == b.dims;
}

}  // namespace reshard
