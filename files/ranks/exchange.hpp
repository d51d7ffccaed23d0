// Moves parts of tensors between ranks: between tiles, or between tiles and shares, which ranks read or write. The
// executor runs plans of synthesize.
#pragma once

#include "files/ranks/parts.hpp"
#include "reshard/redistribute.hpp"
#include "src/model/part_ends.hpp"

namespace reshard::files {

/// A tensor on this rank.
struct RankTensor {
    std::shared_ptr<const Layout> layout;  ///< with the element type on the ranks
    std::span<std::byte> bytes;            ///< of this rank's tile, dense and row-major
};

/// An array on this rank that moves: a share, or a part of a tensor.
struct RankArray {
    Layout layout;
    Storage storage;
    std::span<std::byte> bytes;         ///< from its first element on; a source is only read
    bool band = true;                   ///< it is one run of bytes in every tile
    std::optional<std::size_t> tensor;  ///< the number of the tensor that it is a part of
};

/// Returns an end of a move in this rank's tile of tensor number `number`.
[[nodiscard]] RankArray array_of(const RankTensor& tensor, std::size_t number, const PartEnd& end, Index rank);

/// The two ends of a move. They have the same shape, and may have two element types.
struct ArrayMove {
    RankArray source;
    RankArray target;
};

class Exchange {
public:
    explicit Exchange(Backend& backend) : backend_(&backend) {}

    /// The direction of a round.
    enum class Way { to_tiles, to_shares };

    /// Collective. Moves a round. The share of part i is dense and begins at offsets[i] of `shares`. Errors: as
    /// synthesize and Executor; backend.
    [[nodiscard]] Result<void> run(const Round& round, Way way, std::span<const RankTensor> tensors,
                                   std::span<std::byte> shares, std::span<const Index> offsets);
    /// Collective. Moves arrays, with a cast if the types of the ends differ. Errors: the same.
    [[nodiscard]] Result<void> run(std::span<const ArrayMove> moves);

private:
    Backend* backend_;
    PlanCache plans_;
};

}  // namespace reshard::files
