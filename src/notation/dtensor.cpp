// DTensor's placements, one per mesh axis, both ways.
//
// placements := ["(" | "["] [placement {"," placement} [","]] [")" | "]"]
// placement  := kind ["[" place "]"]                  the place of this axis in the order that shards its dimension
// kind       := ("R" | "Replicate") ["(" ")"]
//             | ("S" | "Shard") "(" ["dim" "="] d ")"
//             | ("P" | "Partial") ["(" [reduction] ")"]
//             | ("_StridedShard" | "_S" | "SS") "(" ["dim" "="] d "," [("sf" | "split_factor" | "split") "="] f ")"
// reduction  := sum | avg | product | prod | max | min
//
// Partial in two ways at once is refused at the second: sums of maxima are not maxima of sums, and DTensor does not say
// which of the two comes first; a layout has one reduction.
// Axes that shard one dimension cut it one after another, each time by torch.chunk: in mesh order, or in the order of
// the places. A strided shard cuts what it gets into f times as many chunks and takes every n-th.
#include <algorithm>

#include <fmt/format.h>

#include "notation/peers.hpp"
#include "notation/scanner.hpp"

namespace reshard::notation {

namespace {

struct Entry {
    enum class Kind { replicate, shard, partial } kind = Kind::replicate;
    std::size_t dim = 0;
    Index split = 1;             ///< of a strided shard
    std::optional<Index> place;  ///< in the order of the dimension
    Reduction reduction = Reduction::sum;
};

// Indices of one dimension that a tile has, in the order in which it holds them.
using Pieces = std::vector<Interval>;

Index size_of_pieces(const Pieces& pieces) {
    Index size = 0;
    for (const Interval& piece : pieces) size += piece.size();
    return size;
}

// The elements [begin, end) of pieces that lie one behind the other.
void append_part(const Pieces& pieces, Index begin, Index end, Pieces& into) {
    Index offset = 0;
    for (const Interval& piece : pieces) {
        const Index from = std::clamp(begin - offset, Index{0}, piece.size());
        const Index to = std::clamp(end - offset, Index{0}, piece.size());
        if (from < to) into.push_back({piece.begin + from, piece.begin + to});
        offset += piece.size();
    }
}

// Chunks number i, i + shards, ... of shards * split.
Pieces chunked(const Pieces& pieces, Index shards, Index split, Index i) {
    const Index size = size_of_pieces(pieces);
    const Index chunk = ceil_divide(size, saturating_multiply(shards, split));
    Pieces part;
    for (Index k = 0; k < split; ++k) {
        const Index begin = saturating_multiply(saturating_add(saturating_multiply(k, shards), i), chunk);
        if (begin >= size) break;
        append_part(pieces, begin, std::min(size, begin + chunk), part);
    }
    return part;
}

struct Cutter {
    Index shards = 1;
    Index split = 1;
};

// What every shard holds, shards numbered with the first cutter most major.
std::vector<Pieces> cut(Index extent, const std::vector<Cutter>& cutters) {
    std::vector<Pieces> held = {extent > 0 ? Pieces{{0, extent}} : Pieces{}};
    for (const Cutter& cutter : cutters) {
        std::vector<Pieces> finer;
        for (const Pieces& pieces : held)
            for (Index i = 0; i < cutter.shards; ++i) finer.push_back(chunked(pieces, cutter.shards, cutter.split, i));
        held = std::move(finer);
    }
    return held;
}

bool ascending(const Pieces& pieces) {
    for (std::size_t i = 1; i < pieces.size(); ++i)
        if (pieces[i].begin < pieces[i - 1].end) return false;
    return true;
}

// A dimension whose shard `s` holds `held[s]`.
Dim dim_of(Index extent, AtomList atoms, const std::vector<Pieces>& held) {
    std::vector<std::pair<Interval, Index>> all;
    for (std::size_t s = 0; s < held.size(); ++s)
        for (const Interval& piece : held[s]) all.emplace_back(piece, static_cast<Index>(s));
    std::ranges::sort(all, {}, [](const auto& entry) { return entry.first.begin; });
    Dim dim(extent, std::move(atoms));
    for (const auto& [piece, shard] : all) dim.pieces.push_back({piece.end, shard});
    dim.pieces = canonical_pieces(dim);
    return dim;
}

constexpr Index shards_max = Index{1} << 20;

class Reader {
public:
    Reader(const Setting& setting, std::string_view text)
        : setting_(setting), mesh_(setting.mesh.value_or(Mesh{})), scanner_(text) {}

    Result<Layout> read() {
        if (auto valid = validate(mesh_); !valid) return tl::unexpected(valid.error());
        if (auto list = read_list(); !list) return tl::unexpected(list.error());
        if (entries_.size() != mesh_.axes.size())
            return scanner_.error(
                Code::layout, fmt::format("{} placements for a mesh of {} axes", entries_.size(), mesh_.axes.size()),
                begin_);
        Layout layout;
        layout.dtype = setting_.dtype;
        layout.mesh = mesh_;
        for (std::size_t d = 0; d < setting_.shape.size(); ++d) {
            auto dim = dim_at(d);
            if (!dim) return tl::unexpected(dim.error());
            layout.dims.push_back(std::move(*dim));
        }
        for (std::size_t axis = 0; axis < entries_.size(); ++axis) {
            if (entries_[axis].kind != Entry::Kind::partial) continue;
            layout.unreduced.push_back(*atom_of(mesh_, {mesh_.axes[axis].name, 1, 0}));
            layout.reduction = entries_[axis].reduction;
        }
        layout.unreduced = as_set(layout.unreduced);
        if (auto valid = validate(layout); !valid) return scanner_.at(valid.error(), begin_);
        return layout;
    }

private:
    Result<void> read_list() {
        const char close = scanner_.take('(') ? ')' : scanner_.take('[') ? ']' : '\0';
        scanner_.skip_space();
        begin_ = scanner_.offset();
        while (!scanner_.at_end() && (close == '\0' || !scanner_.sees(close))) {
            if (auto one = entry(); !one) return one;
            if (!scanner_.take(',')) break;
        }
        if (close != '\0')
            if (auto bracket = scanner_.expect(close); !bracket) return bracket;
        return scanner_.expect_end();
    }

    Result<void> entry() {
        scanner_.skip_space();
        const std::size_t begin = scanner_.offset();
        const std::string_view word = scanner_.word();
        Entry made;
        Result<void> read;
        if (word == "R" || word == "Replicate") {
            if (scanner_.take('(')) read = scanner_.expect(')');
        } else if (word == "S" || word == "Shard") {
            read = shard(made, false);
        } else if (word == "_StridedShard" || word == "_S" || word == "SS") {
            read = shard(made, true);
        } else if (word == "P" || word == "Partial") {
            read = partial(made, begin);
        } else {
            return scanner_.error(Code::syntax, "expected a placement: Shard(d), Replicate(), Partial(), ...", begin);
        }
        if (read && scanner_.take('[')) {
            const auto place = scanner_.integer("the place in the order");
            if (!place) return tl::unexpected(place.error());
            made.place = *place;
            read = scanner_.expect(']');
        }
        if (!read) return read;
        if (entries_.size() >= mesh_.axes.size())
            return scanner_.error(Code::layout, fmt::format("the mesh has {} axes", mesh_.axes.size()), begin);
        entries_.push_back(made);
        return {};
    }

    Result<void> shard(Entry& made, bool strided) {
        made.kind = Entry::Kind::shard;
        if (auto open = scanner_.expect('('); !open) return open;
        if (scanner_.take_word("dim"))
            if (auto equals = scanner_.expect('='); !equals) return equals;
        scanner_.skip_space();
        const std::size_t begin = scanner_.offset();
        const bool negative = scanner_.take('-');
        const auto number = scanner_.integer("a dimension");
        if (!number) return tl::unexpected(number.error());
        const auto rank = static_cast<Index>(setting_.shape.size());
        const Index dim = negative ? rank - *number : *number;
        if (dim < 0 || dim >= rank)
            return scanner_.error(Code::layout, fmt::format("the array has {} dimensions", rank), begin);
        made.dim = static_cast<std::size_t>(dim);
        if (strided) {
            if (auto comma = scanner_.expect(','); !comma) return comma;
            if (scanner_.take_word("sf") || scanner_.take_word("split_factor") || scanner_.take_word("split"))
                if (auto equals = scanner_.expect('='); !equals) return equals;
            scanner_.skip_space();
            const std::size_t place = scanner_.offset();
            const auto split = scanner_.integer("the split factor");
            if (!split) return tl::unexpected(split.error());
            if (*split < 1 || *split > shards_max)
                return scanner_.error(Code::layout, "the split factor is out of bounds", place);
            made.split = *split;
        }
        return scanner_.expect(')');
    }

    Result<void> partial(Entry& made, std::size_t begin) {
        made.kind = Entry::Kind::partial;
        if (scanner_.take('(')) {
            scanner_.skip_space();
            const std::size_t place = scanner_.offset();
            const std::string_view word = scanner_.word();
            const auto reduction = parse_reduction(word == "product" ? "prod" : word.empty() ? "sum" : word);
            if (!reduction) return scanner_.at(reduction.error(), place);
            made.reduction = *reduction;
            if (auto close = scanner_.expect(')'); !close) return close;
        }
        for (const Entry& other : entries_)
            if (other.kind == Entry::Kind::partial && other.reduction != made.reduction)
                return scanner_.error(Code::unsupported, "partial in two ways at once: a layout has one reduction", begin);
        return {};
    }

    // The axes that shard dimension d in the order in which they do.
    Result<std::vector<std::size_t>> order_of(std::size_t d) const {
        std::vector<std::size_t> axes;
        for (std::size_t axis = 0; axis < entries_.size(); ++axis)
            if (entries_[axis].kind == Entry::Kind::shard && entries_[axis].dim == d) axes.push_back(axis);
        const auto placed = [&](std::size_t axis) { return entries_[axis].place.has_value(); };
        if (std::ranges::none_of(axes, placed)) return axes;
        std::ranges::stable_sort(axes, {}, [&](std::size_t axis) { return entries_[axis].place.value_or(-1); });
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (entries_[axes[i]].place != static_cast<Index>(i))
                return scanner_.error(
                    Code::layout, fmt::format("the places of the axes of dimension {} are not 0, 1, ...", d), begin_);
        return axes;
    }

    Result<Dim> dim_at(std::size_t d) {
        const auto axes = order_of(d);
        if (!axes) return tl::unexpected(axes.error());
        std::vector<Cutter> cutters;
        AtomList atoms;
        Index shards = 1;
        Index pieces = 1;
        for (const std::size_t axis : *axes) {
            const Axis& one = mesh_.axes[axis];
            cutters.push_back({one.size, entries_[axis].split});
            atoms.push_back(*atom_of(mesh_, {one.name, 1, 0}));
            shards *= one.size;
            pieces = saturating_multiply(pieces, saturating_multiply(one.size, entries_[axis].split));
        }
        const Index extent = setting_.shape[d];
        const bool strided = std::ranges::any_of(cutters, [](const Cutter& c) { return c.split > 1; });
        if (!strided && extent % shards == 0) return Dim(extent, canonical(atoms));
        if (pieces > shards_max) return scanner_.error(Code::unsupported, "too many shards to cut one by one", begin_);
        const std::vector<Pieces> held = cut(extent, cutters);
        if (!std::ranges::all_of(held, ascending))
            return scanner_.error(Code::unsupported,
                                  fmt::format("shards of dimension {} hold their indices out of order", d), begin_);
        return strided ? plain_order(extent, atoms, *axes, held) : dim_of(extent, canonical(atoms), held);
    }

    // A strided shard is most often the way DTensor writes another order of axes: one that cuts the same is taken.
    Dim plain_order(Index extent, const AtomList& atoms, const std::vector<std::size_t>& axes,
                    const std::vector<Pieces>& held) const {
        const Dim as_cut = dim_of(extent, canonical(atoms), held);
        std::vector<std::size_t> order(axes.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        if (order.size() > 6) return as_cut;
        do {
            AtomList other;
            for (const std::size_t i : order) other.push_back(atoms[i]);
            const Dim plain(extent, canonical(other));
            bool same = true;
            for (Index s = 0; same && s < shard_count(plain); ++s) {
                const Index device = with_value(atoms, 0, s);
                same = side(plain, value_of(other, device)) == side(as_cut, s);
            }
            if (same) return plain;
        } while (std::ranges::next_permutation(order).found);
        return as_cut;
    }

    const Setting& setting_;
    Mesh mesh_;
    Scanner scanner_;
    std::vector<Entry> entries_;
    std::size_t begin_ = 0;
};

// The axes of a list as numbers in the mesh; unsupported where it is not whole axes.
Result<std::vector<std::size_t>> whole_axes(const Layout& layout, const AtomList& atoms) {
    const auto names = names_in(layout, atoms, "DTensor");
    if (!names) return tl::unexpected(names.error());
    std::vector<std::size_t> axes;
    for (const SubAxis& part : *names) {
        if (part.size != 0)
            return cannot_say("DTensor",
                              fmt::format("a part of an axis, {}:({}){}", part.axis, part.before, part.size));
        for (std::size_t i = 0; i < layout.mesh.axes.size(); ++i)
            if (layout.mesh.axes[i].name == part.axis) axes.push_back(i);
    }
    return axes;
}

}  // namespace

Result<Layout> parse_placements(const Setting& setting, std::string_view text) { return Reader(setting, text).read(); }

Result<std::string> format_placements(const Layout& layout) {
    std::vector<std::string> words(layout.mesh.axes.size(), "Replicate()");
    for (std::size_t d = 0; d < layout.dims.size(); ++d) {
        const auto axes = whole_axes(layout, layout.dims[d].atoms);
        if (!axes) return tl::unexpected(axes.error());
        for (std::size_t i = 0; i < axes->size(); ++i) {
            // Axes that are more major in the dimension and later in the mesh have cut before it, by then.
            Index split = 1;
            for (std::size_t j = 0; j < i; ++j)
                if ((*axes)[j] > (*axes)[i]) split *= layout.mesh.axes[(*axes)[j]].size;
            words[(*axes)[i]] =
                split == 1 ? fmt::format("Shard(dim={})", d) : fmt::format("_StridedShard(dim={}, sf={})", d, split);
        }
    }
    const auto partial = whole_axes(layout, layout.unreduced);
    if (!partial) return tl::unexpected(partial.error());
    const std::string_view kind = layout.reduction == Reduction::prod ? "product" : name(layout.reduction);
    for (const std::size_t axis : *partial) words[axis] = fmt::format("Partial({})", kind);
    std::string text = "(";
    for (const std::string& word : words) text += (text.size() > 1 ? ", " : "") + word;
    text += words.size() == 1 ? ",)" : ")";
    // Other cuts than torch.chunk's, axis by axis, have no words; reading the text back tells.
    const auto back = parse_placements({layout.mesh, layout.dtype, shape(layout)}, text);
    if (!back || !same_tiles(*back, layout))
        return cannot_say("DTensor", "where a dimension is cut: torch.chunk, axis by axis, cuts elsewhere");
    return text;
}

}  // namespace reshard::notation
