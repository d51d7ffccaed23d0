#include "src/execute/padding.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/padding.hpp"
#include "src/base/try.hpp"
#include "src/copy/copy.hpp"

namespace reshard {
namespace {

constexpr Index pieces_max = Index{1} << 22;

// The dimension up to `extent`: each shard keeps its indices below it.
Result<Dim> up_to(const Dim& dim, Index extent) {
    if (extent == dim.extent || dim.atoms.empty()) return Dim(extent, dim.atoms);
    Dim same_blocks(extent, dim.atoms);
    if (by_ceil_div(dim) && block_extent(same_blocks) == block_extent(dim)) return same_blocks;
    if (dim.pieces.empty() && std::min(shard_count(dim), extent) > pieces_max)
        return fail(Code::unsupported,
                    fmt::format("{} of {} indices are cut into more than {} pieces", extent, dim.extent, pieces_max));
    Dim cut(extent, dim.atoms);
    for (const Dim::Piece& piece : pieces_of(dim)) {
        cut.pieces.push_back({std::min(piece.end, extent), piece.shard});
        if (piece.end >= extent) break;
    }
    make_canonical(cut);
    return cut;
}

}  // namespace

// The whole tile as a dense box from index 0 on.
Slot Padding::slot() const {
    Box whole;
    for (const Index extent : extents) whole.push_back({0, extent});
    const Tile tile = as_tile(whole);
    return {BufferId::target, 0, tile, row_major(tile)};
}

// One box for each dimension with padding: kept indices in all dimensions before it, and all indices in those after it.
std::vector<Box> Padding::boxes() const {
    std::vector<Box> boxes;
    Box rest;
    for (const Index extent : extents) rest.push_back({0, extent});
    for (std::size_t i = 0; i < kept.size(); ++i) {
        rest[i] = {kept[i], extents[i]};
        if (count(rest) > 0) boxes.push_back(rest);
        rest[i] = {0, kept[i]};
    }
    return boxes;
}

void Padding::fill(std::span<std::byte> tile) const {
    for (const Box& box : boxes())
        BoxFill(region_of(slot(), box, std::ssize(element)), pattern_of(element)).run(tile.data());
}

Result<void> Padding::fill_on(Backend& backend, std::span<std::byte> tile) const {
    return backend.fill(tile, slot(), boxes(), element);
}

Padding padding_of(const Layout& source, const Layout& target, Index rank, std::span<const std::byte> element) {
    const Tile held = tile(target, rank);
    Padding padding{extents(held), {}, std::vector<std::byte>(static_cast<std::size_t>(size_of(target.dtype)))};
    std::ranges::copy(element, padding.element.begin());
    // The tile of a scalar that the rank does not hold has one empty dimension.
    for (std::size_t i = 0; i < held.size() && i < source.dims.size(); ++i)
        padding.kept.push_back(intersect(held[i], Side{{{0, source.dims[i].extent}}}).size());
    return padding;
}

Result<void> is_element_of(const Layout& layout, std::span<const std::byte> element) {
    if (element.empty() || std::ssize(element) == size_of(layout.dtype)) return {};
    return fail(Code::mismatch, fmt::format("the fill value has {} bytes; an element of {} has {}", element.size(),
                                            name(layout.dtype), size_of(layout.dtype)));
}

Result<Problem> common_extents(const Layout& source, const Layout& target) {
    RESHARD_CHECK(validate(source));
    RESHARD_CHECK(validate(target));
    if (source.dims.size() != target.dims.size())
        return fail(Code::mismatch, fmt::format("ranks differ: {} and {}", source.dims.size(), target.dims.size()));
    Problem common{source, target};
    for (std::size_t i = 0; i < source.dims.size(); ++i) {
        const Index extent = std::min(source.dims[i].extent, target.dims[i].extent);
        if (extent < target.dims[i].extent && !target.unreduced.empty())
            return fail(Code::unsupported,
                        fmt::format("dimension {} is padded from {} to {} indices and the target has summands: reduce "
                                    "them first",
                                    i, extent, target.dims[i].extent));
        for (Layout* end : {&common.source, &common.target})
            if (end->dims[i].extent != extent) {
                RESHARD_ASSIGN(end->dims[i], up_to(end->dims[i], extent));
            }
    }
    return common;
}

Storages storages_within(const Layout& source, const Layout& target, Index rank) {
    return {row_major(tile(source, rank)), row_major(tile(target, rank))};
}

Result<void> fill_padding(const Layout& source, const Layout& target, Index rank, Elements out,
                          std::span<const std::byte> element) {
    RESHARD_CHECK(common_extents(source, target));
    RESHARD_CHECK(is_element_of(target, element));
    const Index bytes = saturating_multiply(count(tile(target, rank)), size_of(target.dtype));
    if (out.dtype.value_or(target.dtype) != target.dtype || std::ssize(out.bytes) != bytes)
        return fail(Code::mismatch,
                    fmt::format("rank {} holds {} bytes of {}; `out` has {} bytes of {}", rank, bytes,
                                name(target.dtype), out.bytes.size(), name(out.dtype.value_or(target.dtype))));
    padding_of(source, target, rank, element).fill(out.bytes);
    return {};
}

}  // namespace reshard
