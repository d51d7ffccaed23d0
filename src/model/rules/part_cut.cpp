#include "src/model/rules/part_cut.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/layout/leading.hpp"

namespace reshard::notation {

namespace {

// Returns how many shards share each head of a part; 1 if each shard has whole heads of its own.
Result<Index> sharers(std::string_view axes, Index shards, Index part, Index head, std::string_view which) {
    if (part % head != 0)
        return fail(Code::layout, fmt::format("{}{} indices are not whole heads of {}", which, part, head));
    const Index heads = part / head;
    if (heads % shards == 0) return 1;
    if (shards % heads == 0) return shards / heads;
    return fail(Code::layout,
                fmt::format("{}{} heads of {} for the {} shards of {} would be cut; one number must divide the other",
                            which, heads, head, shards, axes));
}

}  // namespace

Result<Dim> cut_in_parts(AtomList atoms, std::span<const Index> parts, std::span<const Index> units) {
    const Index shards = combinations(atoms);
    if (saturating_multiply(std::ssize(parts), shards) > layout_pieces_max)
        return fail(Code::unsupported, fmt::format("more than {} pieces", layout_pieces_max));
    Dim dim(0, std::move(atoms));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Index unit = units.size() == 1 ? units.front() : units[i];
        if (parts[i] % unit != 0)
            return fail(Code::layout, fmt::format("{} indices are not whole blocks of {}", parts[i], unit));
        const Index own = ceil_divide(parts[i] / unit, shards) * unit;
        for (Index shard = 0; shard < shards; ++shard) {
            const Interval held = block(parts[i], own, shard);
            if (held.size() > 0) dim.pieces.push_back({saturating_add(dim.extent, held.end), shard});
        }
        dim.extent = saturating_add(dim.extent, parts[i]);
    }
    make_canonical(dim);
    return dim;
}

Result<HeadCut> cut_between_heads(std::string_view axes, AtomList atoms, std::span<const Index> parts,
                                  std::span<const Index> heads) {
    const Index shards = combinations(atoms);
    HeadCut cut;
    Index common = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string which = parts.size() > 1 ? fmt::format("part {}: ", i + 1) : "";
        const Index head = heads.size() == 1 ? heads.front() : heads[i];
        RESHARD_TRY(const auto& shared, sharers(axes, shards, parts[i], head, which));
        cut.copies.push_back(shared);
        common = std::gcd(common, shared);
    }
    const auto leading = take_leading(atoms, shards / common);
    if (!leading)
        return fail(Code::layout, fmt::format("{} shards of {} share a head each, and no leading axes have {} shards",
                                              common, axes, shards / common));
    std::vector<Index> extents;
    Index total = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        cut.copies[i] /= common;
        extents.push_back(saturating_multiply(parts[i], cut.copies[i]));
        total = saturating_add(total, extents.back());
    }
    if (total == index_max) return fail(Code::overflow, "the repeated heads have more than 2^63 indices");
    RESHARD_ASSIGN(cut.dim, cut_in_parts(*leading, extents, one_index));
    return cut;
}

Result<void> keeps_whole(std::string_view axes, const Dim& dim, std::string_view unit, Index size) {
    const auto check = [&](Index end) -> Result<void> {
        if (end % size == 0) return {};
        return fail(Code::layout, fmt::format("{} cuts at {}, within a {} of {}", axes, end, unit, size));
    };
    if (dim.extent % size != 0)
        return fail(Code::layout, fmt::format("{} indices are not whole {}s of {}", dim.extent, unit, size));
    if (by_ceil_div(dim)) return check(std::min(block_extent(dim), dim.extent));
    for (const Dim::Piece& piece : pieces_of(dim)) RESHARD_CHECK(check(piece.end));
    return {};
}

}  // namespace reshard::notation
