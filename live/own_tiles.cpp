#include "live/own_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "src/base/try.hpp"
#include "src/copy/cast.hpp"
#include "src/model/digest_sum.hpp"
#include "src/model/tile_places.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::live {
namespace {

constexpr auto digest_bytes = static_cast<Index>(sizeof(std::uint64_t));

}  // namespace

OwnTiles::OwnTiles(std::vector<NamedTensor> tensors, std::vector<DType> held, Index rank, Index ranks)
    : tensors_(std::move(tensors)), held_(std::move(held)), rank_(rank) {
    memory_.offsets = tile_offsets(tensors_, rank);
    for (const NamedTensor& tensor : tensors_) memory_.tiles.push_back(tile_bytes_of(tensor.layout, rank));
    store_ = summed_store_for(saturating_multiply(memory_.offsets.back(), ranks));
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

Result<Segment> OwnTiles::make() const { return Segment::make(version_bytes()); }

Index OwnTiles::version_bytes() const { return memory_.offsets.back() + std::ssize(tensors_) * digest_bytes; }

// The copy and the digest are one pass over the tile, unless it is cast on the way.
OwnTiles::Digests OwnTiles::copy(Tiles tiles, Segment& memory, bool with_digests) const {
    Digests parts(tensors_.size());
    const auto how = static_cast<std::size_t>(store_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Layout& layout = tensors_[i].layout;
        const std::byte* from = tiles[i].data();
        std::byte* to = memory.bytes().data() + memory_.offsets[i];
        const Index bytes = memory_.tiles[i];
        const ElementCast cast = cast_of(held_[i], layout.dtype);
        if (cast) cast.lines[how](bytes / cast.to_bytes, cast.from_bytes, cast.to_bytes, from, to);
        if (!cast && !with_digests) copy_kernels().rows[how]({1, bytes, 0, 0}, from, to);
        if (!with_digests) continue;
        if (cast && store_ == Store::streaming) store_fence();
        DigestSum sum(keys_, static_cast<Index>(i));
        TilePlaces(layout, rank_).each(0, bytes, [&](Index position, Index size) {
            if (cast)
                sum.add(to, position, size);
            else
                sum.copy(std::exchange(from, from + size), to, position, size, store_);
            to += size;
        });
        parts[i] = weighted(sum.total(), inverse(static_cast<std::uint64_t>(copies_of(layout))));
    }
    if (store_ == Store::streaming) store_fence();
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
