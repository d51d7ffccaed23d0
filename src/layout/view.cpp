#include "reshard/planner/view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/planner/refinement.hpp"
#include "src/base/try.hpp"
#include "src/layout/leading.hpp"

namespace reshard {

std::optional<AtomList> take_leading(AtomList& atoms, Index size) {
    AtomList leading;
    while (size > 1) {
        if (atoms.empty()) return std::nullopt;
        Atom& head = atoms.front();
        const Index part = std::min(head.size, size);
        if (head.size % part != 0 || size % part != 0) return std::nullopt;
        leading.push_back({part, head.size / part * head.stride});
        size /= part;
        head.size /= part;
        if (head.size == 1) atoms.erase(atoms.begin());
    }
    return canonical(std::move(leading));
}

namespace {

constexpr Index pieces_max = Index{1} << 22;

Index elements_of(const std::vector<Dim>& dims) {
    Index elements = 1;
    for (const Dim& dim : dims) elements *= dim.extent;
    return elements;
}

// The shortest leading runs of both shapes with equal element counts, and the dimensions of extent 1 that follow them.
std::pair<std::size_t, std::size_t> first_group(std::span<const Dim> a, std::span<const Dim> b) {
    std::size_t i = 0;
    std::size_t j = 0;
    Index left = 1;
    Index right = 1;
    do {
        if (i < a.size() && (left <= right || j == b.size()))
            left *= a[i++].extent;
        else if (j < b.size())
            right *= b[j++].extent;
    } while (left != right || (i == 0 && j == 0));
    if (j == 0 && j < b.size() && b[j].extent == left) ++j;
    while (i < a.size() && a[i].extent == 1 && j == b.size()) ++i;
    while (j < b.size() && b[j].extent == 1 && i == a.size()) ++j;
    return {i, j};
}

// The extents that both runs split into, major to minor. Empty if their borders do not align.
std::vector<Index> refined(std::span<const Dim> a, std::span<const Dim> b) {
    std::vector<Index> borders = {1};
    for (const auto& dims : {a, b}) {
        Index inner = 1;
        for (std::size_t i = dims.size(); i-- > 0;) borders.push_back(inner *= dims[i].extent);
    }
    std::vector<Index> extents;
    for (const Atom& digit : refinement(std::move(borders)).value_or(AtomList{})) extents.push_back(digit.size);
    return extents;
}

// A dimension whose pieces keep whole rows of `inner` indices, by its rows; nullopt if a piece cuts through a row.
std::optional<Dim> by_rows(const Dim& dim, Index inner) {
    std::vector<Dim::Piece> pieces = pieces_of(dim);
    for (Dim::Piece& piece : pieces) {
        if (piece.end % inner != 0) return std::nullopt;
        piece.end /= inner;
    }
    Dim rows(dim.extent / inner, dim.atoms, std::move(pieces));
    make_canonical(rows);
    return rows;
}

// A dimension as several whose extents multiply to its own; nullopt if a shard is no product of their shards.
std::optional<std::vector<Dim>> split(const Dim& dim, std::span<const Index> parts) {
    if (parts.empty()) return dim.atoms.empty() ? std::optional(std::vector<Dim>{}) : std::nullopt;
    if (parts.size() == 1) return std::vector<Dim>{dim};
    std::vector<Dim> dims;
    AtomList atoms = dim.atoms;
    if (!divides(dim)) {
        const auto rows = by_rows(dim, dim.extent / parts[0]);
        if (!rows) return std::nullopt;
        dims.push_back(*rows);
        for (const Index part : parts.subspan(1)) dims.emplace_back(part);
        return dims;
    }
    for (const Index part : parts) {
        const Index shards = combinations(atoms);
        if (part % shards == 0) {
            dims.emplace_back(part, std::exchange(atoms, {}));
            continue;
        }
        const auto leading = shards % part == 0 ? take_leading(atoms, part) : std::nullopt;
        if (!leading) return std::nullopt;
        dims.emplace_back(part, *leading);
    }
    return dims;
}

std::optional<std::vector<Dim>> split(std::span<const Dim> dims, std::span<const Index> parts) {
    std::vector<Dim> all;
    std::size_t at = 0;
    for (const Dim& dim : dims) {
        const std::size_t first = at;
        for (Index left = dim.extent; left > 1; left /= parts[at++]) {
        }
        if (first == at) {
            if (!dim.atoms.empty()) return std::nullopt;  // a sharded extent of 1: all other shards are empty
            continue;
        }
        auto split_dim = split(dim, parts.subspan(first, at - first));
        if (!split_dim) return std::nullopt;
        std::ranges::move(*split_dim, std::back_inserter(all));
    }
    return all;
}

// Two dimensions as one, whose shards are pairs of their shards.
Result<Dim> merge(const Dim& outer, const Dim& inner) {
    const Index shards = shard_count(inner);
    std::vector<Dim::Piece> pieces;
    const std::vector<Dim::Piece> within = pieces_of(inner);
    const bool whole_rows = within.size() == 1;
    Index row = 0;
    for (const Dim::Piece& piece : pieces_of(outer)) {
        const Index rows = piece.end - row;
        const Index more = saturating_multiply(whole_rows ? 1 : rows, static_cast<Index>(within.size()));
        if (saturating_add(more, static_cast<Index>(pieces.size())) > pieces_max)
            return fail(Code::unsupported,
                        fmt::format("the common view of the two shapes has more than {} pieces", pieces_max));
        if (whole_rows) {
            pieces.push_back({piece.end * inner.extent, piece.shard * shards + within[0].shard});
        } else {
            for (Index i = row; i < piece.end; ++i)
                for (const Dim::Piece& part : within)
                    pieces.push_back({i * inner.extent + part.end, piece.shard * shards + part.shard});
        }
        row = piece.end;
    }
    AtomList atoms = outer.atoms;
    atoms.insert(atoms.end(), inner.atoms.begin(), inner.atoms.end());
    Dim merged(outer.extent * inner.extent, canonical(std::move(atoms)), std::move(pieces));
    make_canonical(merged);
    return merged;
}

Result<Dim> merge(std::span<const Dim> dims) {
    Dim merged(1);
    for (std::size_t i = dims.size(); i-- > 0;) {
        auto wider = merge(dims[i], merged);
        if (!wider) return wider;
        merged = std::move(*wider);
    }
    return merged;
}

// A digit of the index in a dimension. A value v of it adds v * weight to the number of the shard.
struct IndexDigit {
    Index size = 1;
    Index weight = 0;  // 0: the digit cuts nothing
};

// The digits of a dimension in equal pieces, major to minor, if the shard of each piece is a sum over digits.
std::optional<std::vector<IndexDigit>> digits_of(const Dim& dim) {
    if (dim.balanced) return std::nullopt;
    const Index block = dim.pieces[0].end;
    const Index count = std::ssize(dim.pieces);
    const auto piece = [&](Index i) { return dim.pieces[static_cast<std::size_t>(i)]; };
    if (checked_multiply(block, count) != dim.extent) return std::nullopt;
    std::vector<IndexDigit> digits;
    if (block > 1) digits.push_back({block});
    for (Index unit = 1; unit < count;) {
        IndexDigit digit{1, piece(unit).shard};
        while (digit.size * unit < count && piece(digit.size * unit).shard == digit.size * digit.weight) ++digit.size;
        if (count % (digit.size * unit) != 0) return std::nullopt;
        unit *= digit.size;
        digits.push_back(digit);
    }
    for (Index i = 0; i < count; ++i) {
        Index rest = i;
        Index shard = 0;
        for (const IndexDigit& digit : std::span(digits).subspan(block > 1 ? 1 : 0)) {
            shard += rest % digit.size * digit.weight;
            rest /= digit.size;
        }
        if (piece(i).shard != shard || piece(i).end != (i + 1) * block) return std::nullopt;
    }
    std::ranges::reverse(digits);
    return digits;
}

// The atoms of one digit of the number that `atoms` count: of `size` values, each worth `weight`.
std::optional<AtomList> digit_atoms(AtomList atoms, Index size, Index weight) {
    const Index all = combinations(atoms);
    if (weight < 1 || all % (size * weight) != 0 || !take_leading(atoms, all / (size * weight))) return std::nullopt;
    return take_leading(atoms, size);
}

// A dimension that is not cut by ceil-div, as one dimension for each of its digits.
std::optional<std::vector<Dim>> by_digits(const Dim& dim) {
    const auto digits = digits_of(dim);
    if (!digits) return std::nullopt;
    std::vector<Dim> dims;
    Index shards = 1;
    for (const IndexDigit& digit : *digits) {
        dims.emplace_back(digit.size);
        if (digit.weight == 0) continue;
        auto atoms = digit_atoms(dim.atoms, digit.size, digit.weight);
        if (!atoms) return std::nullopt;
        dims.back().atoms = *std::move(atoms);
        shards *= digit.size;
    }
    if (shards != shard_count(dim)) return std::nullopt;
    return dims;
}

// A run of dimensions as dimensions of the extents of `shape`, which multiply to the same number. nullopt if the run
// has no such form.
std::optional<std::vector<Dim>> reshaped(std::span<const Dim> run, std::span<const Dim> shape) {
    if (std::ranges::all_of(run, [](const Dim& dim) { return dim.atoms.empty(); }))
        return std::vector<Dim>(shape.begin(), shape.end());
    const std::vector<Index> parts = refined(run, shape);
    if (parts.empty()) return std::nullopt;
    const auto digits = split(run, parts);
    if (!digits) return std::nullopt;
    std::vector<Dim> dims;
    std::span<const Dim> left = *digits;
    for (const Dim& wanted : shape) {
        std::size_t count = 0;
        for (Index extent = wanted.extent; extent > 1; extent /= left[count++].extent) {
        }
        auto merged = count == 1 ? Result<Dim>(left[0]) : merge(left.first(count));
        if (!merged) return std::nullopt;
        dims.push_back(*std::move(merged));
        left = left.subspan(count);
    }
    return dims;
}

bool same_extents(std::span<const Dim> a, std::span<const Dim> b) {
    return std::ranges::equal(a, b, {}, &Dim::extent, &Dim::extent);
}

}  // namespace

std::optional<Layout> in_parts(const Layout& layout, std::span<const std::vector<Index>> parts) {
    Layout made = layout;
    made.dims.clear();
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        auto dims = split(layout.dims[i], parts[i]);
        if (!dims) return std::nullopt;
        std::ranges::move(*dims, std::back_inserter(made.dims));
    }
    return made;
}

std::optional<Layout> in_shape(const Layout& layout, std::span<const Index> shape) {
    Layout made = layout;
    made.dims.assign(shape.begin(), shape.end());
    if (std::ranges::count(shape, 0) > 0) return made;
    std::vector<Dim> dims;
    std::span<const Dim> a = layout.dims;
    std::span<const Dim> b = made.dims;
    while (!a.empty() || !b.empty()) {
        const auto [i, j] = first_group(a, b);
        auto seen = reshaped(a.first(i), b.first(j));
        if (!seen) return std::nullopt;
        std::ranges::move(*seen, std::back_inserter(dims));
        a = a.subspan(i);
        b = b.subspan(j);
    }
    made.dims = std::move(dims);
    return made;
}

std::optional<Layout> in_digits(const Layout& layout) {
    Layout made = layout;
    made.dims.clear();
    for (const Dim& dim : layout.dims) {
        auto dims = by_ceil_div(dim) ? std::optional(std::vector<Dim>{dim}) : by_digits(dim);
        if (!dims) return std::nullopt;
        std::ranges::move(*dims, std::back_inserter(made.dims));
    }
    return made;
}

Result<Layout> permuted(const Layout& layout, std::span<const Index> order) {
    if (order.empty()) return layout;
    std::vector<Index> sorted(order.begin(), order.end());
    std::ranges::sort(sorted);
    bool each_once = sorted.size() == layout.dims.size();
    for (std::size_t i = 0; each_once && i < sorted.size(); ++i) each_once = sorted[i] == static_cast<Index>(i);
    if (!each_once)
        return fail(Code::mismatch, fmt::format("the order of dimensions [{}] does not name each of 0 to {} once",
                                                fmt::join(order, ","), std::ssize(layout.dims) - 1));
    Layout made = layout;
    for (std::size_t i = 0; i < order.size(); ++i) made.dims[i] = layout.dims[static_cast<std::size_t>(order[i])];
    return made;
}

Storage permuted(const Storage& storage, std::span<const Index> order) {
    Storage made = storage;
    for (std::size_t i = 0; i < order.size(); ++i)
        made.strides[i] = storage.strides[static_cast<std::size_t>(order[i])];
    return made;
}

Result<std::pair<Layout, Layout>> in_common_view(const Layout& source, const Layout& target) {
    for (const Layout* end : {&source, &target}) RESHARD_CHECK(validate(*end));
    if (source.dtype != target.dtype || elements_of(source.dims) != elements_of(target.dims)) {
        auto same = same_array(source, target);  // the error says what differs
        return tl::unexpected(same.error());
    }
    if (shape(source) == shape(target)) return std::pair{source, target};
    Layout from = source;
    Layout to = target;
    from.dims.clear();
    to.dims.clear();
    if (elements_of(source.dims) == 0) {
        from.dims.emplace_back(0);
        to.dims.emplace_back(0);
        return std::pair{from, to};
    }
    std::span<const Dim> a = source.dims;
    std::span<const Dim> b = target.dims;
    while (!a.empty() || !b.empty()) {
        const auto [i, j] = first_group(a, b);
        const std::span<const Dim> here = a.first(i);
        const std::span<const Dim> there = b.first(j);
        a = a.subspan(i);
        b = b.subspan(j);
        const std::vector<Index> parts = refined(here, there);
        const auto one = parts.empty() ? std::nullopt : split(here, parts);
        const auto other = parts.empty() ? std::nullopt : split(there, parts);
        if (same_extents(here, there)) {
            from.dims.insert(from.dims.end(), here.begin(), here.end());
            to.dims.insert(to.dims.end(), there.begin(), there.end());
        } else if (one && other) {
            from.dims.insert(from.dims.end(), one->begin(), one->end());
            to.dims.insert(to.dims.end(), other->begin(), other->end());
        } else {
            RESHARD_TRY(auto& merged, merge(here));
            RESHARD_TRY(auto& merged_there, merge(there));
            from.dims.push_back(std::move(merged));
            to.dims.push_back(std::move(merged_there));
        }
    }
    return std::pair{from, to};
}

}  // namespace reshard
