#include "live/own_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/base/try.hpp"
#include "src/copy/cast.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::live {
namespace {

constexpr auto digest_bytes = static_cast<Index>(sizeof(std::uint64_t));

}  // namespace

OwnTiles::OwnTiles(std::vector<NamedTensor> tensors, std::vector<DType> held, Index rank)
    : tensors_(std::move(tensors)), held_(std::move(held)), rank_(rank) {
    memory_.offsets = tile_offsets(tensors_, rank);
    for (const NamedTensor& tensor : tensors_) memory_.tiles.push_back(tile_bytes_of(tensor.layout, rank));
}

Result<void> OwnTiles::check_casts() const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const DType published = tensors_[i].layout.dtype;
        if (held_[i] != published && !tables::can_cast(held_[i], published))
            return fail(Code::unsupported, fmt::format("tensor {} is {} and cannot be cast to {}", tensors_[i].name,
                                                       name(held_[i]), name(published)));
    }
    return {};
}

Result<void> OwnTiles::check(Tiles tiles) const {
    if (tiles.size() != tensors_.size())
        return fail(Code::mismatch,
                    fmt::format("{} tiles; wanted {}, one for each tensor", tiles.size(), tensors_.size()));
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Index wanted = static_cast<Index>(tile_count(tensors_[i].layout, rank_)) * size_of(held_[i]);
        if (std::ssize(tiles[i]) != wanted)
            return fail(Code::mismatch, fmt::format("the tile of tensor {} has {} bytes; rank {} holds {}",
                                                    tensors_[i].name, tiles[i].size(), rank_, wanted));
    }
    return {};
}

Result<Segment> OwnTiles::make() const {
    return Segment::make(memory_.offsets.back() + std::ssize(tensors_) * digest_bytes);
}

Result<OwnTiles::Digests> OwnTiles::copy(Tiles tiles, Segment& memory, bool with_digests) const {
    Digests parts(tensors_.size());
    const Store store = store_for(memory_.offsets.back());
    const auto how = static_cast<std::size_t>(store);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Layout& layout = tensors_[i].layout;
        const auto to = memory.bytes().subspan(static_cast<std::size_t>(memory_.offsets[i]),
                                               static_cast<std::size_t>(memory_.tiles[i]));
        if (const ElementCast cast = cast_of(held_[i], layout.dtype))
            cast.lines[how](std::ssize(to) / cast.to_bytes, cast.from_bytes, cast.to_bytes, tiles[i].data(), to.data());
        else
            copy_kernels().rows[how]({1, std::ssize(to), 0, 0}, tiles[i].data(), to.data());
        if (store == Store::streaming) store_fence();
        if (!with_digests) continue;
        RESHARD_ASSIGN(parts[i], digest_part(keys_, layout, rank_, to, static_cast<Index>(i)));
    }
    return parts;
}

void OwnTiles::seal(Segment& memory, const Digests& digests) const {
    const auto end = memory.bytes().subspan(static_cast<std::size_t>(memory_.offsets.back()));
    std::memcpy(end.data(), digests.data(), digests.size() * sizeof(std::uint64_t));
}

Index OwnTiles::bytes() const { return std::accumulate(memory_.tiles.begin(), memory_.tiles.end(), Index{0}); }

std::string commit_vote(Index version, const OwnTiles::Digests& parts) {
    std::string vote(1, 'y');
    vote.append(reinterpret_cast<const char*>(&version), sizeof version);
    vote.append(reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(std::uint64_t));
    return vote;
}

Result<OwnTiles::Digests> add_up(const std::vector<std::string>& votes, Index version, std::size_t tensors) {
    OwnTiles::Digests digests(tensors);
    for (std::size_t rank = 0; rank < votes.size(); ++rank) {
        std::string_view vote = votes[rank];
        if (vote.starts_with('f'))
            return fail(Code::backend, fmt::format("rank {} of the publisher: {}", rank, vote.substr(1)));
        Index theirs = 0;
        if (vote.size() != 1 + sizeof theirs + tensors * sizeof(std::uint64_t))
            return fail(Code::mismatch, fmt::format("rank {} of the publisher is in another call", rank));
        std::memcpy(&theirs, vote.data() + 1, sizeof theirs);
        if (theirs != version)
            return fail(Code::usage, fmt::format("rank {} of the publisher commits version {}; this rank {}", rank,
                                                 theirs, version));
        vote.remove_prefix(1 + sizeof theirs);
        for (std::size_t i = 0; i < tensors; ++i) {
            std::uint64_t part = 0;
            std::memcpy(&part, vote.data() + i * sizeof part, sizeof part);
            digests[i] = added(digests[i], part);
        }
    }
    return digests;
}

}  // namespace reshard::live
