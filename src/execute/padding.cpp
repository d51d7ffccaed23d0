#include "reshard/padding.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "src/base/try.hpp"

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

// The tile up to the extents of another array, in its own indices.
std::vector<Index> kept_of(const Tile& tile, const Layout& other) {
    std::vector<Index> kept;
    for (std::size_t i = 0; i < tile.size() && i < other.dims.size(); ++i)
        kept.push_back(intersect(tile[i], Side{{{0, other.dims[i].extent}}}).size());
    return kept;
}

void fill(std::span<std::byte> out, std::span<const std::byte> element) {
    if (element.empty()) {
        std::ranges::fill(out, std::byte{0});
        return;
    }
    for (std::size_t at = 0; at < out.size(); at += element.size())
        std::memcpy(out.data() + at, element.data(), element.size());
}

// Fills all of a row-major box except its first `kept` indices in each dimension.
void fill_rest(std::span<std::byte> out, std::span<const Index> extents, std::span<const Index> kept,
               std::span<const std::byte> element) {
    if (extents.empty() || out.empty()) return;
    const std::size_t row = out.size() / static_cast<std::size_t>(extents[0]);
    const auto whole = static_cast<std::size_t>(kept[0]);
    fill(out.subspan(whole * row), element);
    if (std::ranges::equal(extents.subspan(1), kept.subspan(1))) return;
    for (std::size_t i = 0; i < whole; ++i)
        fill_rest(out.subspan(i * row, row), extents.subspan(1), kept.subspan(1), element);
}

Result<void> fits(std::string_view name, std::span<const std::byte> bytes, std::optional<DType> dtype,
                  const Layout& layout, Index rank) {
    if (dtype && *dtype != layout.dtype)
        return fail(Code::mismatch, fmt::format("the elements of `{}` are {}, the elements of its layout {}", name,
                                                reshard::name(*dtype), reshard::name(layout.dtype)));
    const auto needed = checked_multiply(count(tile(layout, rank)), size_of(layout.dtype));
    if (needed && static_cast<std::uint64_t>(*needed) == bytes.size()) return {};
    return fail(Code::mismatch, fmt::format("rank {} holds {} elements of {} bytes, `{}` has {} bytes", rank,
                                            tile_count(layout, rank), size_of(layout.dtype), name, bytes.size()));
}

Result<void> can_fill(const Layout& target, Index rank, Elements out, std::span<const std::byte> element) {
    RESHARD_CHECK(fits("out", out.bytes, out.dtype, target, rank));
    if (!element.empty() && std::ssize(element) != size_of(target.dtype))
        return fail(Code::mismatch, fmt::format("the fill value has {} bytes, an element of {} has {}", element.size(),
                                                name(target.dtype), size_of(target.dtype)));
    return {};
}

}  // namespace

Result<Problem> common_extents(const Layout& source, const Layout& target) {
    RESHARD_CHECK(validate(source));
    RESHARD_CHECK(validate(target));
    if (source.dtype != target.dtype || source.dims.size() != target.dims.size()) {
        const auto same = same_array(source, target);  // the error says what differs
        return tl::unexpected(same.error());
    }
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
    RESHARD_CHECK(can_fill(target, rank, out, element));
    const Tile held = tile(target, rank);
    fill_rest(out.bytes, extents(held), kept_of(held, source), element);
    return {};
}

Result<std::unique_ptr<PaddedMove>> PaddedMove::start(Backend& backend, const Layout& source, const Layout& target,
                                                      ConstElements in, Elements out,
                                                      std::span<const std::byte> element) {
    Options options;
    options.capabilities = backend.capabilities();
    const Index rank = backend.rank();
    // All ranks agree in prepare, a rank with an error too.
    const auto judged = common_extents(source, target).and_then([&](const Problem& common) -> Result<Judged<Plan>> {
        RESHARD_CHECK(fits("in", in.bytes, in.dtype, source, rank));
        RESHARD_CHECK(can_fill(target, rank, out, element));
        RESHARD_TRY(const auto& made, synthesize(common.source, common.target, options));
        return made;
    });
    const Storages storages = judged ? storages_within(source, target, rank) : Storages{};
    RESHARD_TRY(auto& executor, Executor::prepare(judged, backend, storages));
    std::unique_ptr<PaddedMove> move(new PaddedMove(std::move(executor)));
    std::span<std::byte> workspace;
    if (const Index needed = move->executor_.workspace_bytes(); needed > 0) {
        RESHARD_ASSIGN(move->workspace_, backend.allocate(needed));
        workspace = move->workspace_->bytes().first(static_cast<std::size_t>(needed));
    }
    RESHARD_ASSIGN(move->bound_, move->executor_.bind(Buffers{in.bytes, out.bytes, workspace}));
    RESHARD_ASSIGN(move->run_, move->bound_->start());
    const Tile held = tile(target, rank);
    fill_rest(out.bytes, extents(held), kept_of(held, source), element);  // the run leaves these bytes untouched
    return move;
}

Result<void> PaddedMove::wait() { return run_->wait(); }

Result<void> redistribute_padded(Backend& backend, const Layout& source, const Layout& target, ConstElements in,
                                 Elements out, std::span<const std::byte> element) {
    RESHARD_TRY(const auto& move, PaddedMove::start(backend, source, target, in, out, element));
    return move->wait();
}

}  // namespace reshard
