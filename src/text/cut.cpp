#include "src/text/cut.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/layout/flattened.hpp"

namespace reshard::notation {

namespace {

// So many pieces are an answer to read and to keep.
constexpr Index pieces_max = Index{1} << 22;

Result<Dim> scan_blocks(Scanner& scanner, const Dim& dim) {
    const std::size_t begin = scanner.offset();
    RESHARD_TRY(const auto& block, scanner.integer("the indices of a block"));
    if (block < 1) return scanner.error(Code::layout, "a block has at least one index", begin);
    if (dim.extent / block > pieces_max)
        return scanner.error(Code::unsupported, fmt::format("more than {} blocks", pieces_max), begin);
    return block_cyclic(dim.extent, dim.atoms, block);
}

// Shares, or pieces if a colon follows the first number.
Result<Dim> scan_list(Scanner& scanner, Dim dim) {
    const std::size_t begin = scanner.offset();
    std::vector<Index> shares;
    std::vector<Dim::Piece> pieces;
    do {
        RESHARD_TRY(const auto& number, scanner.integer("a share, or where a piece ends"));
        if (!pieces.empty() || (shares.empty() && scanner.sees(':'))) {
            RESHARD_CHECK(scanner.expect(':'));
            RESHARD_TRY(const auto& shard, scanner.integer("the shard of a piece"));
            pieces.push_back({number, shard});
        } else {
            shares.push_back(number);
        }
    } while (scanner.take(','));
    RESHARD_CHECK(scanner.expect(']'));
    if (!pieces.empty()) {
        for (std::size_t i = 0; i < pieces.size(); ++i)
            if (pieces[i].end < (i > 0 ? pieces[i - 1].end : 0) || pieces[i].shard >= shard_count(dim))
                return scanner.error(Code::layout, "pieces must ascend and belong to shards that there are", begin);
        if (pieces.back().end != dim.extent)
            return scanner.error(Code::layout, fmt::format("the pieces end at {} of {}", pieces.back().end, dim.extent),
                                 begin);
        dim.pieces = std::move(pieces);
        make_canonical(dim);
        return dim;
    }
    if (static_cast<Index>(shares.size()) != shard_count(dim))
        return scanner.error(Code::layout, fmt::format("{} shares for {} shards", shares.size(), shard_count(dim)),
                             begin);
    Index sum = 0;
    for (const Index share : shares) sum = saturating_add(sum, share);
    if (sum != dim.extent)
        return scanner.error(Code::layout, fmt::format("the shares add up to {}, not {}", sum, dim.extent), begin);
    return with_shard_sizes(dim.atoms, shares);
}

}  // namespace

Result<Dim> scan_cut(Scanner& scanner, Dim dim) {
    if (scanner.take('/')) return scan_blocks(scanner, dim);
    if (!scanner.take('[')) return dim;
    if (!scanner.take_word("balanced")) return scan_list(scanner, std::move(dim));
    RESHARD_CHECK(scanner.expect(']'));
    return balanced(dim.extent, std::move(dim.atoms));
}

Result<Dim> scan_dealt(Scanner& scanner, const Mesh& mesh, AtomList& used, std::span<const Dim> dims,
                       std::size_t place) {
    constexpr Index shards_max = Index{1} << 22;
    RESHARD_CHECK(scanner.expect('@'));
    RESHARD_TRY(const auto& axes, scan_dim_axes(scanner, mesh, used));
    if (combinations(axes) > shards_max)
        return scanner.error(Code::unsupported, fmt::format("more than {} shards of a flattened tile", shards_max),
                             place);
    std::vector<Index> units(static_cast<std::size_t>(combinations(axes)), 1);
    if (scanner.take('[')) {
        RESHARD_ASSIGN(units, scan_numbers(scanner, "the units of a shard", 0));
        RESHARD_CHECK(scanner.expect(']'));
    }
    return scanner.at(flattened(dims, axes, units), place);
}

std::string format_cut(const Dim& dim) {
    if (dim.balanced) return "[balanced]";
    if (dim.pieces.empty()) return "";
    const Index block = dim.pieces.front().end;
    if (dim.pieces == block_cyclic(dim.extent, dim.atoms, block).pieces) return fmt::format("/{}", block);
    std::string text;
    const bool ascend = std::is_sorted(dim.pieces.begin(), dim.pieces.end(),
                                       [](const Dim::Piece& a, const Dim::Piece& b) { return a.shard < b.shard; });
    const bool once = std::adjacent_find(dim.pieces.begin(), dim.pieces.end(),
                                         [](const Dim::Piece& a, const Dim::Piece& b) { return a.shard >= b.shard; }) ==
                      dim.pieces.end();
    // Shards without indices past the last piece have to be said too, unless they are far more than the pieces.
    const Index shards = shard_count(dim);
    if (ascend && once && shards / 16 <= static_cast<Index>(dim.pieces.size())) {
        Index begin = 0;
        auto piece = dim.pieces.begin();
        for (Index shard = 0; shard < shards; ++shard) {
            const bool holds = piece != dim.pieces.end() && piece->shard == shard;
            text += fmt::format("{}{}", shard > 0 ? "," : "", holds ? piece->end - begin : 0);
            if (holds) begin = (piece++)->end;
        }
    } else {
        for (const Dim::Piece& piece : dim.pieces)
            text += fmt::format("{}{}:{}", text.empty() ? "" : ",", piece.end, piece.shard);
    }
    return "[" + text + "]";
}

}  // namespace reshard::notation

namespace reshard {

std::string why_uneven(const Layout& layout) {
    const auto uneven = std::ranges::find_if(layout.dims, [](const Dim& dim) { return !divides(dim); });
    if (uneven == layout.dims.end()) return {};
    const std::string where = fmt::format("dimension {} of {}", uneven - layout.dims.begin(), format(layout));
    if (by_ceil_div(*uneven))
        return fmt::format("sizes do not divide: {} has {} indices for {} shards", where, uneven->extent,
                           shard_count(*uneven));
    if (uneven->balanced)
        return fmt::format("{} is balanced: {} indices for {} shards", where, uneven->extent, shard_count(*uneven));
    const std::string cut = notation::format_cut(*uneven);
    if (cut.front() == '/')
        return fmt::format("{} is cut block-cyclically, in blocks of {}", where, std::string_view(cut).substr(1));
    if (cut.find(':') == std::string::npos) return fmt::format("{} is cut into stated shares, {}", where, cut);
    return fmt::format("{} is cut at stated indices", where);
}

}  // namespace reshard
