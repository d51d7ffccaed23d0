#include "src/model/rule_layout.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/text/cut.hpp"

namespace reshard::notation {

namespace {

// The most pieces that a layout of a rule may have.
constexpr Index layout_pieces_max = Index{1} << 22;

// Cuts each of several consecutive parts by ceil-div. Returns nullopt if the pieces exceed layout_pieces_max.
std::optional<Dim> cut_in_parts(Index extent, AtomList atoms, std::span<const Index> parts) {
    const Index shards = combinations(atoms);
    if (saturating_multiply(std::ssize(parts), shards) > layout_pieces_max) return std::nullopt;
    Dim dim(extent, std::move(atoms));
    Index begin = 0;
    for (const Index part : parts) {
        for (Index shard = 0; shard < shards; ++shard) {
            const Interval held = block(part, ceil_divide(part, shards), shard);
            if (held.size() > 0) dim.pieces.push_back({begin + held.end, shard});
        }
        begin += part;
    }
    make_canonical(dim);
    return dim;
}

class EntryReader {
public:
    EntryReader(const Rule& rule, const Mesh& mesh, const Asked& asked)
        : rule_(rule), asked_(asked), scanner_(rule.line.text) {
        layout_.dtype = asked.dtype;
        layout_.mesh = mesh;
        scanner_.move_to(rule.layout_offset);
    }

    Result<Layout> read() {
        if (scanner_.take('-')) {
            for (const Index extent : asked_.shape) layout_.dims.emplace_back(extent);
            RESHARD_CHECK(scanner_.at(validate(layout_), rule_.layout_offset));
            return layout_;
        }
        RESHARD_CHECK(scanner_.expect('['));
        if (!scanner_.take(']')) {
            do {
                RESHARD_CHECK(entry());
            } while (scanner_.take(','));
            RESHARD_CHECK(scanner_.expect(']'));
        }
        if (dim_ != asked_.shape.size())
            return scanner_.error(Code::mismatch,
                                  fmt::format("{} dimensions for a tensor of {}", dim_, asked_.shape.size()),
                                  rule_.layout_offset);
        RESHARD_CHECK(scanner_.at(validate(layout_), rule_.layout_offset));
        return layout_;
    }

private:
    Result<void> entry() {
        const std::size_t begin = scanner_.place();
        if (scanner_.take('{')) return home(begin);
        if (dim_ == asked_.shape.size())
            return scanner_.error(Code::mismatch, fmt::format("more dimensions than the tensor's {}", dim_), begin);
        const std::size_t number = dim_++;
        Dim dim(asked_.shape[number]);
        if (!scanner_.take('-')) {
            RESHARD_TRY(auto& atoms, scan_dim_axes(scanner_, layout_.mesh, used_));
            dim.atoms = canonical(atoms);
            RESHARD_ASSIGN(dim, cut(number, std::move(dim), begin));
        }
        layout_.dims.push_back(std::move(dim));
        return {};
    }

    Result<Dim> cut(std::size_t number, Dim dim, std::size_t begin) {
        std::vector<Index> parts;
        if (scanner_.take('{')) {
            const std::size_t first = scanner_.place();
            RESHARD_ASSIGN(parts, scan_numbers(scanner_, "the extent of a part", 0));
            RESHARD_CHECK(scanner_.expect('}'));
            Index sum = 0;
            for (const Index part : parts) sum = saturating_add(sum, part);
            if (sum != dim.extent)
                return scanner_.error(Code::layout, fmt::format("the parts add up to {}, not {}", sum, dim.extent),
                                      first);
        } else if (number == asked_.along && !asked_.parts.empty()) {
            if (scanner_.sees('[') || scanner_.sees('/'))
                return scanner_.error(Code::layout,
                                      "parts that are cut by themselves are cut evenly; ++ cuts the whole",
                                      scanner_.place());
            parts = asked_.parts;
        } else {
            return scan_cut(scanner_, std::move(dim));
        }
        auto made = cut_in_parts(dim.extent, std::move(dim.atoms), parts);
        if (!made)
            return scanner_.error(Code::unsupported, fmt::format("more than {} pieces", layout_pieces_max), begin);
        return *std::move(made);
    }

    // {e}@axes: the tensor is number e of a count, which the axes divide. It adds no dimension to the tensor.
    Result<void> home(std::size_t begin) {
        const std::string_view name = scanner_.word();
        RESHARD_CHECK(scanner_.expect('}'));
        RESHARD_CHECK(scanner_.expect('@'));
        RESHARD_TRY(auto& atoms, scan_dim_axes(scanner_, layout_.mesh, used_));
        const NamePattern::Token* const token = rule_.pattern ? rule_.pattern->find(name) : nullptr;
        if (token == nullptr || token->count == 0)
            return scanner_.error(Code::syntax, fmt::format("the pattern counts no {{{}}}", name), begin);
        const Index number = number_below(value_in(*asked_.names, name), token->count);
        Dim all(token->count, canonical(atoms));
        Dim one(1, all.atoms, {{1, number / block_extent(all)}});
        make_canonical(one);
        layout_.dims.push_back(std::move(one));
        return {};
    }

    const Rule& rule_;
    const Asked& asked_;
    Scanner scanner_;
    Layout layout_;
    AtomList used_;
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

// Errors without a place.
Result<Dim> dim_in_blocks(const Dim& dim, Index block) {
    Dim coarse(ceil_divide(dim.extent, block), dim.atoms);
    if (dim.atoms.empty()) return coarse;
    if (shard_count(dim) > layout_pieces_max)
        return fail(Code::unsupported, "has too many shards to look at one by one");
    for (const Dim::Piece& piece : pieces_of(dim)) {
        if (piece.end % block != 0 && piece.end != dim.extent)
            return fail(Code::layout, fmt::format("is cut at {}, within a block of {}", piece.end, block));
        coarse.pieces.push_back({ceil_divide(piece.end, block), piece.shard});
    }
    make_canonical(coarse);
    return coarse;
}

std::vector<Index> without_ones(std::vector<Index> extents) {
    std::erase(extents, 1);
    return extents;
}

}  // namespace

Result<EndLayouts::Shared> EndLayouts::said(std::size_t rule, const Asked& asked) {
    const Rule& line = end_.rules[rule];
    Shared& kept = said_[{rule, asked.dtype, asked.shape, asked.parts, axes_in(line, asked)}];
    if (kept) return kept;
    RESHARD_TRY(auto& layout, line.line.numbered(EntryReader(line, end_.mesh, asked).read()));
    kept = std::make_shared<const Layout>(std::move(layout));
    return kept;
}

Result<EndLayouts::Shared> EndLayouts::in_blocks(std::size_t rule, const Asked& asked, const Shared& of) {
    const Rule& line = end_.rules[rule];
    const BlocksOf& blocks = *line.blocks;
    Shared& kept = in_blocks_[{rule, asked.dtype, asked.shape, of}];
    if (kept) return kept;
    Layout layout = *of;
    layout.dtype = asked.dtype;
    if (blocks.blocks.size() > 1 && blocks.blocks.size() != layout.dims.size())
        return line.line.error(
            Code::mismatch,
            fmt::format("{} numbers for a tensor of {} dimensions", blocks.blocks.size(), layout.dims.size()),
            line.layout_offset);
    const std::size_t first = blocks.blocks.size() == 1 && !line.stack.empty() ? 1 : 0;
    for (std::size_t k = first; k < layout.dims.size(); ++k) {
        const Index block = blocks.blocks.size() > 1 ? blocks.blocks[k] : blocks.blocks.front();
        auto coarse = dim_in_blocks(layout.dims[k], block);
        if (!coarse)
            return line.line.error(coarse.error().code, fmt::format("dimension {} {}", k, coarse.error().message),
                                   line.layout_offset);
        layout.dims[k] = *std::move(coarse);
    }
    if (without_ones(shape(layout)) != without_ones(asked.shape))
        return line.line.error(Code::mismatch, "not as many blocks as the tensor has", line.layout_offset);
    kept = std::make_shared<const Layout>(std::move(layout));
    return kept;
}

}  // namespace reshard::notation
