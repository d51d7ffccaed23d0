#include "src/notations/ragged.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

// tuple := ("(" | "[") [number {"," number} [","]] (")" | "]")
Result<std::vector<Index>> scan_tuple(Scanner& scanner, std::string_view what) {
    std::vector<Index> numbers;
    const char close = scanner.take('(') ? ')' : ']';
    if (close == ']') RESHARD_CHECK(scanner.expect('['));
    while (!scanner.sees(close)) {
        RESHARD_TRY(const auto& number, scanner.integer(what));
        numbers.push_back(number);
        if (!scanner.take(',')) break;
    }
    RESHARD_CHECK(scanner.expect(close));
    return numbers;
}

}  // namespace

Result<std::vector<Index>> scan_shape(Scanner& scanner, std::size_t rank) {
    const std::size_t begin = scanner.place();
    const bool named = scanner.take_word("torch");
    if (named) {
        RESHARD_CHECK(scanner.expect('.'));
        if (!scanner.take_word("Size")) return scanner.error(Code::syntax, "expected torch.Size", begin);
        RESHARD_CHECK(scanner.expect('('));
    }
    RESHARD_TRY(auto& shape, scan_tuple(scanner, "an extent"));
    if (named) RESHARD_CHECK(scanner.expect(')'));
    if (shape.size() != rank)
        return scanner.error(Code::layout,
                             fmt::format("a shape of {} dimensions, the array has {}", shape.size(), rank), begin);
    return std::move(shape);
}

Result<Ragged> scan_ragged(Scanner& scanner, std::size_t rank) {
    Ragged ragged;
    RESHARD_CHECK(scanner.expect('('));
    if (scanner.take_word("dims")) RESHARD_CHECK(scanner.expect('='));
    const std::size_t place = scanner.place();
    RESHARD_TRY(const auto& dims, scan_tuple(scanner, "a dimension"));
    for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] != static_cast<Index>(i))
            return scanner.error(Code::layout, "the dimensions of a ragged shard are 0, 1, ...", place);
    if (dims.empty() || dims.size() > rank)
        return scanner.error(Code::layout, fmt::format("the array has {} dimensions", rank), place);
    ragged.dims = dims.size();
    RESHARD_CHECK(scanner.expect(','));
    if (scanner.take_word("local_units")) RESHARD_CHECK(scanner.expect('='));
    const std::size_t begin = scanner.place();
    RESHARD_ASSIGN(ragged.units, scan_tuple(scanner, "the units of a rank"));
    if (std::ranges::all_of(ragged.units, [](Index units) { return units == 0; }))
        return scanner.error(Code::layout, "no rank has a unit", begin);
    RESHARD_CHECK(scanner.expect(')'));
    return ragged;
}

Result<ShardShapes> scan_shard_shapes(Scanner& scanner, std::size_t rank) {
    ShardShapes shapes;
    RESHARD_CHECK(scanner.expect('{'));
    while (!scanner.sees('}')) {
        const std::size_t begin = scanner.place();
        RESHARD_TRY(const auto& axis, scanner.integer("an axis of the mesh"));
        const auto [entry, fresh] = shapes.try_emplace(static_cast<std::size_t>(axis));
        if (!fresh) return scanner.error(Code::layout, "an axis has its shapes twice", begin);
        RESHARD_CHECK(scanner.expect(':'));
        const char close = scanner.take('(') ? ')' : ']';
        if (close == ']') RESHARD_CHECK(scanner.expect('['));
        while (!scanner.sees(close)) {
            RESHARD_TRY(auto& shape, scan_shape(scanner, rank));
            entry->second.push_back(std::move(shape));
            if (!scanner.take(',')) break;
        }
        RESHARD_CHECK(scanner.expect(close));
        if (!scanner.take(',')) break;
    }
    RESHARD_CHECK(scanner.expect('}'));
    return shapes;
}

std::optional<std::vector<Index>> shares_in_order(const Dim& dim) {
    std::vector<Index> shares;
    Index begin = 0;
    for (const Dim::Piece& piece : pieces_of(dim)) {
        if (piece.shard < std::ssize(shares)) return std::nullopt;
        shares.resize(static_cast<std::size_t>(piece.shard), 0);
        shares.push_back(piece.end - begin);
        begin = piece.end;
    }
    shares.resize(static_cast<std::size_t>(shard_count(dim)), 0);
    return shares;
}

std::string word_of_shares(const Layout& layout, std::size_t d, std::size_t axis, std::vector<Index> shares,
                           bool stands_first, std::string& shapes) {
    if (d == 0 && stands_first) {
        Index unit = 0;
        for (const Index share : shares) unit = std::gcd(unit, share);
        for (Index& share : shares) share /= unit;
        return fmt::format("RaggedShard(dims=(0,), local_units=({}{}))", fmt::join(shares, ", "),
                           shares.size() == 1 ? "," : "");
    }
    Index stride = device_count(layout.mesh);
    for (std::size_t i = 0; i <= axis; ++i) stride /= layout.mesh.axes[i].size;
    shapes += fmt::format("{}{}: (", shapes.empty() ? "" : ", ", axis);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const auto shape = tile_shape(layout, device_at(layout.mesh, static_cast<Index>(i) * stride));
        shapes += fmt::format("{}({}{})", i > 0 ? ", " : "", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
    }
    shapes += shares.size() == 1 ? ",)" : ")";
    return fmt::format("Shard(dim={})", d);
}

}  // namespace reshard::notation
