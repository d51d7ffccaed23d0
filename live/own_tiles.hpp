// The tiles of one rank of a publisher: how they become the memory of a version, and the digests of the version.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "live/reader.hpp"
#include "live/tensors.hpp"
#include "live/transport/segment.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard::live {

/// The memory of a version has the tiles at their offsets, and behind them a digest for each tensor.
class OwnTiles {
public:
    using Tiles = std::span<const std::span<const std::byte>>;
    using Digests = std::vector<std::uint64_t>;

    /// `held` has the element type of each given tile. It is cast to the type of the tensor's layout. So many ranks
    /// copy their tiles at once.
    OwnTiles(std::vector<NamedTensor> tensors, std::vector<DType> held, Index rank, Index ranks);

    /// Fails if a cast is not possible. Errors: unsupported. The tensor is named.
    [[nodiscard]] Result<void> check_casts() const;
    /// Fails if the number or the sizes of tiles are wrong. Errors: mismatch. The tensor is named.
    [[nodiscard]] Result<void> check(Tiles tiles) const;
    /// Memory for a version. Errors: backend.
    [[nodiscard]] Result<Segment> make() const;
    /// Copies the tiles. Returns this rank's part of the digest of each tensor; 0 if it is not wanted. pre:
    /// check(tiles).
    [[nodiscard]] Digests copy(Tiles tiles, Segment& memory, bool with_digests) const;
    /// Writes the digests of the whole version behind the tiles.
    void seal(Segment& memory, const Digests& digests) const;

    [[nodiscard]] const std::vector<NamedTensor>& tensors() const { return tensors_; }
    [[nodiscard]] const VersionMemory& memory() const { return memory_; }
    [[nodiscard]] Index bytes() const;          ///< of all tiles in a version
    [[nodiscard]] Index version_bytes() const;  ///< of the memory of a version

private:
    std::vector<NamedTensor> tensors_;
    std::vector<DType> held_;
    Index rank_;
    VersionMemory memory_;
    Store store_ = Store::cached;
    DigestKeys keys_;
};

/// The vote of a rank for a version: the number, and its parts of the digests.
[[nodiscard]] std::string commit_vote(Index version, const OwnTiles::Digests& parts);
/// The digests of the whole version, from the votes of all ranks. A vote `f` and a reason says that a rank has failed.
/// Errors: backend (a rank has failed), mismatch (a rank is in another call), usage (a rank commits another version).
[[nodiscard]] Result<OwnTiles::Digests> add_up(const std::vector<std::string>& votes, Index version,
                                               std::size_t tensors);

}  // namespace reshard::live
