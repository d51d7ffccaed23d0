#include "src/model/rules/rule_layout.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/layout/regular_cut.hpp"
#include "src/model/rules/part_cut.hpp"
#include "src/text/cut.hpp"

namespace reshard::notation {

namespace {

std::string_view without_blanks(std::string_view text) { return text.substr(0, text.find_last_not_of(' ') + 1); }

class EntryReader {
public:
    EntryReader(const Rule& rule, const Mesh& mesh, const Asked& asked)
        : rule_(rule), asked_(asked), scanner_(rule.line.text) {
        layout_.dtype = asked.dtype;
        layout_.mesh = mesh;
        scanner_.move_to(rule.layout_offset);
    }

    Result<EndLayouts::Placed> read() {
        placed_.parts = asked_.parts;
        RESHARD_CHECK(read_entries());
        RESHARD_CHECK(scanner_.at(validate(layout_), rule_.layout_offset));
        placed_.layout = std::make_shared<const Layout>(std::move(layout_));
        return std::move(placed_);
    }

private:
    Result<void> read_entries() {
        if (scanner_.take('-')) {
            for (const Index extent : asked_.shape) layout_.dims.emplace_back(extent);
            return {};
        }
        RESHARD_CHECK(scanner_.expect('['));
        const bool flattens = flattens_here();
        if (flattens) RESHARD_CHECK(scanner_.expect('('));
        const std::size_t first = scanner_.place();
        if (!scanner_.take(']')) {
            do {
                RESHARD_CHECK(entry());
            } while (scanner_.take(','));
            if (flattens) RESHARD_CHECK(flatten(first));
            RESHARD_CHECK(scanner_.expect(']'));
        }
        if (dim_ == asked_.shape.size()) return {};
        return scanner_.error(Code::mismatch,
                              fmt::format("{} dimensions for a tensor of {}", dim_, asked_.shape.size()),
                              rule_.layout_offset);
    }

    // [(entry, ...)@axes]: true if the parenthesis here closes before an @. Axes in parentheses are an entry.
    [[nodiscard]] bool flattens_here() {
        if (!scanner_.sees('(')) return false;
        const std::string_view text = scanner_.text();
        std::size_t at = scanner_.place();
        for (Index open = 0; at < text.size(); ++at) {
            open += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
            if (open == 0) break;
        }
        at = text.find_first_not_of(' ', std::min(at + 1, text.size()));
        return at != std::string_view::npos && text[at] == '@';
    }

    // )@axes, )@axes[1,3,2]: each tile of the entries is flattened, and the axes deal it out in units.
    Result<void> flatten(std::size_t begin) {
        RESHARD_CHECK(scanner_.expect(')'));
        RESHARD_TRY(auto& flat, scan_dealt(scanner_, layout_.mesh, used_, layout_.dims, begin));
        if (!asked_.parts.empty() || !placed_.padded.empty())
            return scanner_.error(
                Code::unsupported,
                fmt::format("{} cannot be flattened",
                            placed_.padded.empty() ? "parts that are cut by themselves" : "a padded tensor"),
                begin);
        layout_.dims = {std::move(flat)};
        return {};
    }

    Result<void> entry() {
        const std::size_t begin = scanner_.place();
        RESHARD_TRY(const auto& is_home, home());
        if (is_home) return {};
        if (dim_ == asked_.shape.size())
            return scanner_.error(Code::mismatch, fmt::format("more dimensions than the tensor's {}", dim_), begin);
        const std::size_t number = dim_++;
        Dim dim(asked_.shape[number]);
        const bool is_cut = !scanner_.take('-');
        if (is_cut) {
            RESHARD_TRY(auto& atoms, scan_dim_axes(scanner_, layout_.mesh, used_));
            axes_ = without_blanks(scanner_.text().substr(begin, scanner_.offset() - begin));
            dim.atoms = canonical(atoms);
        }
        RESHARD_ASSIGN(dim.extent, padded(number));
        if (is_cut) {
            RESHARD_ASSIGN(dim, cut(number, std::move(dim), begin));
        }
        layout_.dims.push_back(std::move(dim));
        return {};
    }

    // pad 0 to 1024, pad 0 to multiple of tp*128. Returns the extent of the dimension. Parts that are cut by themselves
    // are padded by themselves.
    Result<Index> padded(std::size_t number) {
        const Index extent = asked_.shape[number];
        const std::size_t place = scanner_.place();
        if (!scanner_.take_word("pad")) return extent;
        if (!asked_.may_pad) return scanner_.error(Code::syntax, "only a target is padded", place);
        const std::size_t value_at = scanner_.place();
        RESHARD_TRY(const auto& value, scanner_.integer("0"));
        if (value != 0)
            return scanner_.error(Code::unsupported, fmt::format("{} as padding; only 0 pads", value), value_at);
        if (!scanner_.take_word("to")) return scanner_.error(Code::syntax, "expected 'to'", scanner_.place());
        const bool multiple = scanner_.take_word("multiple");
        if (multiple && !scanner_.take_word("of"))
            return scanner_.error(Code::syntax, "expected 'of'", scanner_.place());
        RESHARD_TRY(const auto& size, product());
        const bool apart = number == asked_.along && !asked_.parts.empty();
        std::vector<Index> parts = apart ? asked_.parts : std::vector<Index>{extent};
        Index all = 0;
        for (Index& part : parts) {
            if (!multiple && size < part)
                return scanner_.error(Code::layout, fmt::format("{} indices are padded to {}", part, size), place);
            part = multiple ? saturating_multiply(ceil_divide(part, size), size) : size;
            all = saturating_add(all, part);
        }
        if (all == index_max) return scanner_.error(Code::overflow, "more than 2^63 indices", place);
        if (apart) placed_.parts = std::move(parts);
        if (placed_.padded.empty()) placed_.padded = asked_.shape;
        placed_.padded[number] = all;
        return all;
    }

    // product := factor {"*" factor}; factor := number | axis
    Result<Index> product() {
        Index product = 1;
        do {
            const std::size_t place = scanner_.place();
            const std::string_view axis = scanner_.word();
            const auto found = std::ranges::find(layout_.mesh.axes, axis, &Axis::name);
            if (!axis.empty() && found == layout_.mesh.axes.end())
                return scanner_.error(Code::mesh, fmt::format("the mesh has no axis '{}'", axis), place);
            Index factor = axis.empty() ? 0 : found->size;
            if (axis.empty()) {
                RESHARD_ASSIGN(factor, scanner_.integer("a number or an axis"));
            }
            if (factor < 1) return scanner_.error(Code::layout, "a factor is at least 1", place);
            product = saturating_multiply(product, factor);
        } while (scanner_.take('*'));
        return product;
    }

    Result<Dim> cut(std::size_t number, Dim dim, std::size_t begin) {
        const bool said = scanner_.sees('{');
        const bool fused = !said && number == asked_.along && !asked_.parts.empty();
        std::vector<Index> parts = fused ? placed_.parts : std::vector<Index>{};
        if (said) {
            RESHARD_ASSIGN(parts, said_parts(dim.extent));
        }
        if (!parts.empty()) {
            placed_.dim_parts.resize(number + 1);
            placed_.dim_parts[number] = parts;
        }
        const bool own_cut = scanner_.sees('[') || scanner_.sees('/');
        if (own_cut && fused) {
            RESHARD_ASSIGN(dim, cut_each(dim.atoms, std::exchange(parts, {}), begin));
        } else if (parts.empty()) {
            RESHARD_ASSIGN(dim, scan_cut(scanner_, std::move(dim)));
        }
        const std::size_t units_at = scanner_.place();
        const bool heads = scanner_.take_word("heads");
        const std::string_view unit = heads ? "head" : "block";
        if (!heads && !scanner_.take_word("blocks")) {
            if (parts.empty()) return dim;
            return scanner_.at(cut_in_parts(std::move(dim.atoms), parts, one_index), begin);
        }
        RESHARD_TRY(auto& units, scan_units(unit));
        const std::size_t count = std::max<std::size_t>(parts.size(), 1);
        if (units.size() > 1 && units.size() != count)
            return scanner_.error(Code::layout, fmt::format("{} sizes of {}s for {} parts", units.size(), unit, count),
                                  units_at);
        if (own_cut) {
            RESHARD_CHECK(scanner_.at(keeps_whole(axes_, dim, unit, units.front()), begin));
            return dim;
        }
        if (parts.empty()) parts = {dim.extent};
        if (!heads) return scanner_.at(cut_in_parts(std::move(dim.atoms), parts, units), begin);
        return scanner_.at(cut_heads(dim, fused, std::move(parts), std::move(units)), begin);
    }

    // Cuts each part as the text behind the axes says.
    Result<Dim> cut_each(const AtomList& atoms, std::span<const Index> parts, std::size_t begin) {
        if (saturating_multiply(std::ssize(parts), combinations(atoms)) > layout_pieces_max)
            return scanner_.error(Code::unsupported, fmt::format("more than {} pieces", layout_pieces_max), begin);
        const std::size_t place = scanner_.place();
        Dim all(0, atoms);
        for (const Index part : parts) {
            scanner_.move_to(place);
            RESHARD_TRY(const auto& cut, scan_cut(scanner_, Dim(part, atoms)));
            for (const Dim::Piece& piece : pieces_of(cut)) all.pieces.push_back({all.extent + piece.end, piece.shard});
            all.extent += part;
        }
        make_canonical(all);
        return all;
    }

    Result<std::vector<Index>> said_parts(Index extent) {
        (void)scanner_.take('{');
        const std::size_t first = scanner_.place();
        RESHARD_TRY(auto& parts, scan_numbers(scanner_, "the extent of a part", 0));
        RESHARD_CHECK(scanner_.expect('}'));
        Index sum = 0;
        for (const Index part : parts) sum = saturating_add(sum, part);
        if (sum == extent) return std::move(parts);
        return scanner_.error(Code::layout, fmt::format("the parts add up to {}, not {}", sum, extent), first);
    }

    // "of" n, or "of" {n, n} for parts.
    Result<std::vector<Index>> scan_units(std::string_view unit) {
        const std::size_t place = scanner_.place();
        if (!scanner_.take_word("of")) return scanner_.error(Code::syntax, "expected 'of'", place);
        const std::string what = fmt::format("the indices of a {}", unit);
        if (scanner_.take('{')) {
            RESHARD_TRY(auto& sizes, scan_numbers(scanner_, what, 1));
            RESHARD_CHECK(scanner_.expect('}'));
            return std::move(sizes);
        }
        const std::size_t number = scanner_.place();
        RESHARD_TRY(const auto& size, scanner_.integer(what));
        if (size < 1) return scanner_.error(Code::layout, fmt::format("a {} has at least one index", unit), number);
        return std::vector<Index>{size};
    }

    // Errors without a place.
    Result<Dim> cut_heads(const Dim& dim, bool fused, std::vector<Index> parts, std::vector<Index> heads) {
        RESHARD_TRY(auto& cut, cut_between_heads(axes_, dim.atoms, parts, heads));
        const bool repeats = std::ranges::any_of(cut.copies, [](Index copies) { return copies > 1; });
        if (repeats && !fused)
            return fail(Code::layout, fmt::format("parts of {{...}} have not equally many heads for each of the {} "
                                                  "shards of {}; a line that fuses them with + repeats heads",
                                                  combinations(dim.atoms), axes_));
        if (repeats) {
            placed_.copies = std::move(cut.copies);
            heads.resize(parts.size(), heads.front());
            placed_.heads = std::move(heads);
        }
        return std::move(cut.dim);
    }

    // {e}@axes, first@axes, last@axes, 2@axes: the tensor is on one shard of the axes. It adds no dimension to the
    // tensor. Returns false if the entry is something else.
    Result<bool> home() {
        const std::size_t begin = scanner_.place();
        if (scanner_.take('{')) {
            RESHARD_CHECK(home_by_number(begin));
            return true;
        }
        const bool number = !scanner_.at_end() && scanner_.text()[begin] >= '0' && scanner_.text()[begin] <= '9';
        Index shard = 0;
        if (number) {
            RESHARD_ASSIGN(shard, scanner_.integer("a shard"));
        }
        const std::string_view word = number ? "" : scanner_.word();
        if (!number && ((word != "first" && word != "last") || !scanner_.sees('@'))) {
            scanner_.move_to(begin);
            return false;
        }
        RESHARD_CHECK(scanner_.expect('@'));
        RESHARD_TRY(auto& atoms, scan_dim_axes(scanner_, layout_.mesh, used_));
        const Index shards = combinations(atoms);
        if (word == "last") shard = shards - 1;
        if (shard >= shards) return scanner_.error(Code::layout, fmt::format("shard {} of {}", shard, shards), begin);
        add_home(canonical(atoms), shard);
        return true;
    }

    // The tensor is number e of a count, which the axes divide.
    Result<void> home_by_number(std::size_t begin) {
        const std::string_view name = scanner_.word();
        RESHARD_CHECK(scanner_.expect('}'));
        RESHARD_CHECK(scanner_.expect('@'));
        RESHARD_TRY(auto& atoms, scan_dim_axes(scanner_, layout_.mesh, used_));
        const NamePattern::Token* const token = rule_.pattern ? rule_.pattern->find(name) : nullptr;
        if (token == nullptr || !token->counts())
            return scanner_.error(Code::syntax, fmt::format("the pattern counts no {{{}}}", name), begin);
        // Lines of {n:3} and {n:3:61} of one model must agree, so the count begins at 0.
        const Index number = number_in(value_in(*asked_.names, name), token->numbers);
        Dim all(token->numbers.end, canonical(atoms));
        if (scanner_.take('/')) {
            const std::size_t place = scanner_.place();
            RESHARD_TRY(const auto& block, scanner_.integer("the numbers of a block"));
            if (block < 1) return scanner_.error(Code::layout, "a block has at least one number", place);
            add_home(std::move(all.atoms), number / block % shard_count(all));
            return {};
        }
        RESHARD_ASSIGN(all, scan_cut(scanner_, std::move(all)));
        const auto owner = std::ranges::upper_bound(all.pieces, number, {}, &Dim::Piece::end);
        add_home(all.atoms, all.pieces.empty() ? RegularCut(all).shard_of(number) : owner->shard);
        return {};
    }

    void add_home(AtomList atoms, Index shard) {
        Dim one(1, std::move(atoms), {{1, shard}});
        make_canonical(one);
        layout_.dims.push_back(std::move(one));
    }

    const Rule& rule_;
    const Asked& asked_;
    Scanner scanner_;
    Layout layout_;
    EndLayouts::Placed placed_;
    AtomList used_;
    std::string_view axes_;  // of the entry, as text
    std::size_t dim_ = 0;
};

// The values of the names in the entries. The layout depends on them and on the shape.
std::vector<std::string> axes_in(const Rule& rule, const Asked& asked) {
    std::vector<std::string> values;
    if (asked.names == nullptr) return values;
    const std::size_t end = rule.line.text.find("<-");
    const std::string_view text = rule.line.text.substr(rule.layout_offset, end - rule.layout_offset);
    for (const Binding& binding : *asked.names)
        if (text.find(fmt::format("{{{}}}", binding.name)) != std::string_view::npos)
            values.emplace_back(binding.value);
    return values;
}

}  // namespace

Result<EndLayouts::Placed> EndLayouts::said(std::size_t rule, const Asked& asked) {
    const Rule& line = end_.rules[rule];
    Placed& kept = said_[{rule, asked.dtype, asked.shape, asked.parts, axes_in(line, asked)}];
    if (!kept.layout) {
        RESHARD_ASSIGN(kept, line.line.numbered(EntryReader(line, end_.mesh, asked).read()));
    }
    return kept;
}

}  // namespace reshard::notation
