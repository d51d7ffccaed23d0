// DTensor's placements, one per mesh axis, both ways.
//
// text       := placements | ("Spec" | "DTensorSpec") "(" placements "on" (shape | "unknown" "shape") ")"   as printed
// placements := ["(" | "["] [placement {"," placement} [","]] [")" | "]"] [[","] "sharding_shapes" "=" shapes]
// placement  := kind ["[" place "]"]                  the place of this axis in the order that shards its dimension
//               in a Spec the commas may be missing: S(0)R, RS(0)
// kind       := ("R" | "Replicate") ["(" ")"]
//             | ("S" | "Shard") "(" ["dim" "="] d ")"
//             | ("P" | "Partial") ["(" [["reduce_op" "="] reduction] ")"]
//             | ("_StridedShard" | "_S" | "SS") "(" ["dim" "="] d "," [("sf" | "split_factor" | "split") "="] f ")"
//             | "RaggedShard" "(" ["dims" "="] tuple "," ["local_units" "="] tuple ")"                 veScale's
// shapes     := "{" axis ":" "(" shape {"," shape} ")" {"," ...} "}"      PhysicsNeMo's, of the ranks along an axis
// reduction  := sum | avg | product | prod | max | min
//
// Partial in two ways at once is refused at the second: sums of maxima are not maxima of sums, and DTensor does not say
// which of the two comes first. Only sum and avg go together: both are a sum, divided by the averaged axes.
// Axes that shard one dimension cut it one after another, each time by torch.chunk: in mesh order, or in the order of
// the places. Strided shards most often describe another order, right to left (FSDP over tensor parallel). If all of
// them do, axes cut in that order, as redistribute does. Otherwise a strided shard cuts its piece into f parts, each
// part into chunks, and takes the n-th of every part.
// A ragged shard of several dimensions may cut through a row. It is then a layout of the array that has them as one
// dimension: the same elements in the same order. Axes before it may shard the same dimensions: (Shard(1),
// RaggedShard((0, 1), (1, 3, 2))). Each of their tiles is then flattened and cut into the units.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/layout/flattened.hpp"
#include "src/notations/chunks.hpp"
#include "src/notations/peers.hpp"
#include "src/notations/ragged.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

namespace {

struct Entry {
    enum class Kind { replicate, shard, partial } kind = Kind::replicate;
    std::size_t dim = 0;
    std::size_t ragged = 0;     ///< leading dimensions of a ragged shard, else none
    Index split = 1;            ///< of a strided shard
    std::vector<Index> shares;  ///< of a ragged shard its units; of one with shapes, the indices of each rank
    std::size_t place_in_text = 0;
    std::optional<Index> place;  ///< in the order of the dimension
    Reduction reduction = Reduction::sum;
};

class PlacementsReader {
public:
    PlacementsReader(const NotationContext& setting, std::string_view text)
        : setting_(setting), shape_(setting.shape), mesh_(setting.mesh.value_or(Mesh{})), scanner_(text) {}

    Result<Layout> read() {
        RESHARD_CHECK(validate(mesh_));
        RESHARD_CHECK(read_list());
        if (entries_.size() != mesh_.axes.size())
            return scanner_.error(
                Code::layout, fmt::format("{} placements for a mesh of {} axes", entries_.size(), mesh_.axes.size()),
                begin_);
        RESHARD_CHECK(merge_ragged());
        Index stride = device_count(mesh_);
        axes_.resize(shape_.size());
        for (std::size_t axis = 0; axis < entries_.size(); ++axis) {
            atoms_.push_back({mesh_.axes[axis].size, stride /= mesh_.axes[axis].size});
            if (entries_[axis].kind == Entry::Kind::shard && axis != flattens_)
                axes_[entries_[axis].dim].push_back(axis);
        }
        Layout layout;
        layout.dtype = setting_.dtype;
        layout.mesh = mesh_;
        const bool orders = splits_are_orders();
        for (std::size_t d = 0; d < shape_.size(); ++d) {
            RESHARD_TRY(auto& dim, dim_at(d, orders));
            layout.dims.push_back(std::move(dim));
        }
        if (flattens_) RESHARD_CHECK(flatten(layout));
        Index averaged = 1;
        for (std::size_t axis = 0; axis < entries_.size(); ++axis) {
            if (entries_[axis].kind != Entry::Kind::partial) continue;
            layout.unreduced.push_back(atoms_[axis]);
            if (entries_[axis].reduction == Reduction::avg) averaged *= atoms_[axis].size;
        }
        layout.unreduced = as_set(layout.unreduced);
        layout.reduction = reduction_.value_or(Reduction::sum);
        if (combine_of(layout.reduction) == Combine::sum) divide_by(layout, averaged);
        RESHARD_CHECK(scanner_.at(validate(layout), begin_));
        return layout;
    }

private:
    Result<void> read_list() {
        const bool spec = scanner_.take_word("Spec") || scanner_.take_word("DTensorSpec");
        if (spec) RESHARD_CHECK(scanner_.expect('('));
        const char close = scanner_.take('(') ? ')' : scanner_.take('[') ? ']' : '\0';
        begin_ = scanner_.place();
        while (!scanner_.at_end() && (close == '\0' || !scanner_.sees(close))) {
            if (close == '\0' && (sees_word("sharding_shapes") || sees_word("on") || scanner_.sees(')'))) break;
            RESHARD_CHECK(entry(spec));
            if (!scanner_.take(',') && !spec) break;
        }
        if (close != '\0') RESHARD_CHECK(scanner_.expect(close));
        if (spec) RESHARD_CHECK(end_of_spec());
        (void)(close != '\0' && scanner_.take(','));
        if (sees_word("sharding_shapes")) RESHARD_CHECK(shapes());
        return scanner_.expect_end();
    }

    // The shape that a Spec prints must be the array's.
    Result<void> end_of_spec() {
        if (!scanner_.take_word("on")) return scanner_.error(Code::syntax, "expected 'on' and the shape");
        if (scanner_.take_word("unknown")) {
            if (!scanner_.take_word("shape")) return scanner_.error(Code::syntax, "expected 'shape'");
            return scanner_.expect(')');
        }
        const std::size_t begin = scanner_.place();
        RESHARD_TRY(const auto& shape, scan_shape(scanner_, setting_.shape.size()));
        if (shape != setting_.shape)
            return scanner_.error(Code::mismatch,
                                  fmt::format("the shape is ({}), the array has ({})", fmt::join(shape, ", "),
                                              fmt::join(setting_.shape, ", ")),
                                  begin);
        return scanner_.expect(')');
    }

    bool sees_word(std::string_view word) {
        const std::size_t before = scanner_.place();
        const bool there = scanner_.take_word(word);
        scanner_.move_to(before);
        return there;
    }

    // The local shapes of the ranks along an axis say where it cuts.
    Result<void> shapes() {
        (void)scanner_.take_word("sharding_shapes");
        RESHARD_CHECK(scanner_.expect('='));
        const std::size_t begin = scanner_.place();
        RESHARD_TRY(const auto& by_axis, scan_shard_shapes(scanner_, shape_.size()));
        for (const auto& [axis, shapes] : by_axis) {
            if (axis >= entries_.size() || entries_[axis].kind != Entry::Kind::shard || entries_[axis].ragged > 0 ||
                entries_[axis].split != 1)
                return scanner_.error(Code::layout, fmt::format("axis {} has shapes and is no Shard", axis), begin);
            Entry& entry = entries_[axis];
            if (std::ssize(shapes) != mesh_.axes[axis].size)
                return scanner_.error(
                    Code::layout,
                    fmt::format("shapes of {} ranks for an axis of {} devices", shapes.size(), mesh_.axes[axis].size),
                    begin);
            for (const std::vector<Index>& shape : shapes) {
                std::vector<Index> like = shapes.front();
                like[entry.dim] = shape[entry.dim];
                if (shape != like)
                    return scanner_.error(Code::layout, "the shapes differ in a dimension that the axis does not cut",
                                          begin);
                entry.shares.push_back(shape[entry.dim]);
            }
            entry.place_in_text = begin;
        }
        return {};
    }

    // The dimensions of a ragged shard as one, where it cuts through their rows; units become shares.
    Result<void> merge_ragged() {
        const auto found = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.ragged > 0; });
        if (found == entries_.end()) return {};
        const std::size_t place = found->place_in_text;
        const auto number = static_cast<std::size_t>(found - entries_.begin());
        if (std::ssize(found->shares) != mesh_.axes[number].size)
            return scanner_.error(Code::layout, "not as many units as the axis has devices", place);
        RESHARD_TRY(const auto& beside, shards_beside(number));
        if (beside) {
            flattens_ = number;
            return {};
        }
        Index rows = 1;  // of the dimensions behind the first
        for (std::size_t d = 1; d < found->ragged; ++d) rows = saturating_multiply(rows, shape_[d]);
        const Index all = saturating_multiply(rows, shape_[0]);
        Index units = 0;
        for (const Index unit : found->shares) units = saturating_add(units, unit);
        if (all == index_max) return scanner_.error(Code::overflow, "more elements than 64 bits can count", place);
        if (all % units != 0)
            return scanner_.error(Code::layout, fmt::format("{} units do not divide {}", units, all), place);
        bool whole_rows = true;
        for (Index& share : found->shares) {
            share *= all / units;
            whole_rows = whole_rows && (rows == 0 || share % rows == 0);
        }
        if (whole_rows) {
            for (Index& share : found->shares) share = rows == 0 ? 0 : share / rows;
            if (rows == 0) found->shares.front() = shape_[0];
            return {};
        }
        shape_[0] = all;
        shape_.erase(shape_.begin() + 1, shape_.begin() + static_cast<std::ptrdiff_t>(found->ragged));
        for (Entry& entry : entries_)
            if (entry.kind == Entry::Kind::shard && &entry != &*found) entry.dim -= found->ragged - 1;
        return {};
    }

    // True if other axes shard the dimensions of the ragged shard. They must stand before it and be plain shards.
    Result<bool> shards_beside(std::size_t ragged) const {
        bool beside = false;
        for (std::size_t axis = 0; axis < entries_.size(); ++axis) {
            const Entry& entry = entries_[axis];
            if (axis == ragged || entry.kind != Entry::Kind::shard) continue;
            if (entry.ragged == 0 && entry.dim >= entries_[ragged].ragged) continue;
            if (entry.ragged > 0 || axis > ragged)
                return scanner_.error(
                    Code::unsupported,
                    "a ragged shard flattens the tiles of the axes before it; no axis behind it and no "
                    "second ragged shard cut the same dimensions",
                    entries_[std::max(axis, ragged)].place_in_text);
            beside = true;
        }
        return beside;
    }

    // The tiles of the other axes, each flattened and cut into units.
    Result<void> flatten(Layout& layout) const {
        const Entry& entry = entries_[*flattens_];
        const auto cut = std::span(layout.dims).first(entry.ragged);
        RESHARD_TRY(auto& flat, scanner_.at(flattened(cut, {atoms_[*flattens_]}, entry.shares), entry.place_in_text));
        layout.dims.erase(layout.dims.begin() + 1, layout.dims.begin() + static_cast<std::ptrdiff_t>(entry.ragged));
        layout.dims.front() = std::move(flat);
        return {};
    }

    // Nothing separates R from the next letter in Spec(RS(1) on ...).
    std::string_view kind(bool spec) {
        const std::size_t begin = scanner_.place();
        const std::string_view word = scanner_.word();
        if (!spec || !word.starts_with('R') || word == "Replicate" || word == "RaggedShard") return word;
        scanner_.move_to(begin + 1);
        return word.substr(0, 1);
    }

    Result<void> entry(bool spec) {
        const std::size_t begin = scanner_.place();
        const std::string_view word = kind(spec);
        Entry made;
        made.place_in_text = begin;
        Result<void> read;
        if (word == "R" || word == "Replicate") {
            if (scanner_.take('(')) read = scanner_.expect(')');
        } else if (word == "S" || word == "Shard") {
            read = shard(made, false);
        } else if (word == "_StridedShard" || word == "_S" || word == "SS") {
            read = shard(made, true);
        } else if (word == "RaggedShard") {
            RESHARD_TRY(auto& ragged, scan_ragged(scanner_, shape_.size()));
            made.kind = Entry::Kind::shard;
            made.ragged = ragged.dims;
            made.shares = std::move(ragged.units);
        } else if (word == "P" || word == "Partial") {
            read = partial(made, begin);
        } else {
            return scanner_.error(Code::syntax, "expected a placement: Shard(d), Replicate(), Partial(), ...", begin);
        }
        if (read && scanner_.take('[')) {
            RESHARD_ASSIGN(made.place, scanner_.integer("the place in the order"));
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
        RESHARD_CHECK(scanner_.expect('('));
        if (scanner_.take_word("dim")) RESHARD_CHECK(scanner_.expect('='));
        const std::size_t begin = scanner_.place();
        const bool negative = scanner_.take('-');
        RESHARD_TRY(const auto& number, scanner_.integer("a dimension"));
        const auto rank = static_cast<Index>(setting_.shape.size());
        const Index dim = negative ? rank - number : number;
        if (dim < 0 || dim >= rank)
            return scanner_.error(Code::layout, fmt::format("the array has {} dimensions", rank), begin);
        made.dim = static_cast<std::size_t>(dim);
        if (strided) {
            RESHARD_CHECK(scanner_.expect(','));
            if (scanner_.take_word("sf") || scanner_.take_word("split_factor") || scanner_.take_word("split"))
                RESHARD_CHECK(scanner_.expect('='));
            const std::size_t place = scanner_.place();
            RESHARD_TRY(const auto& split, scanner_.integer("the split factor"));
            if (split < 1 || split > chunks_max)
                return scanner_.error(Code::layout, "the split factor is out of bounds", place);
            made.split = split;
        }
        return scanner_.expect(')');
    }

    Result<void> partial(Entry& made, std::size_t begin) {
        made.kind = Entry::Kind::partial;
        Reduction kind = Reduction::sum;
        if (scanner_.take('(')) {
            if (scanner_.take_word("reduce_op")) RESHARD_CHECK(scanner_.expect('='));
            const std::size_t place = scanner_.place();
            const auto quoted = scanner_.quoted();
            const std::string_view word = quoted ? *quoted : scanner_.word();
            const auto reduction = parse_reduction(word == "product" ? "prod" : word.empty() ? "sum" : word);
            RESHARD_ASSIGN(kind, scanner_.at(reduction, place));
            RESHARD_CHECK(scanner_.expect(')'));
        }
        if (combine_of(reduction_.value_or(kind)) != combine_of(kind))
            return scanner_.error(Code::unsupported, "partial in two ways at once: only sum and avg go together",
                                  begin);
        reduction_ = made.reduction = kind;
        return {};
    }

    std::vector<Cutter> cutters_of(const std::vector<std::size_t>& axes) const {
        std::vector<Cutter> cutters;
        for (const std::size_t axis : axes)
            cutters.push_back({mesh_.axes[axis].size, entries_[axis].split, atoms_[axis]});
        return cutters;
    }

    // True if all splits describe the order of cuts. As in PyTorch, one split that does not turns all of them into
    // cuts.
    bool splits_are_orders() const {
        if (std::ranges::any_of(entries_, [](const Entry& entry) { return entry.place.has_value(); })) return false;
        return std::ranges::all_of(axes_,
                                   [&](const auto& axes) { return order_said_by(cutters_of(axes)).has_value(); });
    }

    // The axes that shard dimension d in the order of their places.
    Result<std::vector<std::size_t>> placed(std::size_t d) const {
        std::vector<std::size_t> axes = axes_[d];
        const auto has_place = [&](std::size_t axis) { return entries_[axis].place.has_value(); };
        if (std::ranges::none_of(axes, has_place)) return axes;
        std::ranges::stable_sort(axes, {}, [&](std::size_t axis) { return entries_[axis].place.value_or(-1); });
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (entries_[axes[i]].place != static_cast<Index>(i))
                return scanner_.error(
                    Code::layout, fmt::format("the places of the axes of dimension {} are not 0, 1, ...", d), begin_);
        return axes;
    }

    Result<Dim> dim_at(std::size_t d, bool orders) const {
        RESHARD_TRY(const auto& axes, placed(d));
        std::vector<Cutter> cutters = cutters_of(axes);
        if (const auto order = orders ? order_said_by(cutters) : std::nullopt) {
            std::vector<Cutter> ordered;
            for (const std::size_t i : *order) ordered.push_back({cutters[i].shards, 1, cutters[i].atom});
            cutters = std::move(ordered);
        }
        for (const std::size_t axis : axes) {
            const Entry& entry = entries_[axis];
            if (entry.shares.empty()) continue;
            const auto wrong = [&](Code code, const std::string& why) {
                return scanner_.error(code, why, entry.place_in_text);
            };
            if (axes.size() > 1) return wrong(Code::unsupported, "shards of any size beside another of one dimension");
            Index sum = 0;
            for (const Index share : entry.shares) sum = saturating_add(sum, share);
            if (sum != shape_[d])
                return wrong(Code::layout,
                             fmt::format("the shapes add up to {} in dimension {}, not {}", sum, d, shape_[d]));
            return with_shard_sizes(canonical({atoms_[axis]}), entry.shares);
        }
        auto dim = cut_by(shape_[d], cutters);
        if (!dim) return scanner_.error(Code::unsupported, "too many shards to cut one by one", begin_);
        return *std::move(dim);
    }

    const NotationContext& setting_;
    std::vector<Index> shape_;  ///< the setting's, or with the dimensions of a ragged shard as one
    Mesh mesh_;
    Scanner scanner_;
    std::vector<Entry> entries_;
    AtomList atoms_;                              ///< of each axis of the mesh
    std::vector<std::vector<std::size_t>> axes_;  ///< that shard each dimension
    std::optional<std::size_t> flattens_;         ///< the axis of a ragged shard that cuts tiles of other axes
    std::optional<Reduction> reduction_;          ///< of the partial axes
    std::size_t begin_ = 0;
};

}  // namespace

Result<Layout> parse_placements(const NotationContext& setting, std::string_view text) {
    return PlacementsReader(setting, text).read();
}

}  // namespace reshard::notation
