// Moves between arrays whose extents differ. A target that is larger than its source is padded with a fill value; a
// smaller one is stripped. Element i of a dimension stays element i.
#pragma once

#include "reshard/redistribute.hpp"

namespace reshard {

/// The move of the elements that both arrays have. Each dimension of both layouts has the smaller of the two extents,
/// and each device keeps its indices below it. Ends of one shape stay as they are.
/// Errors: as validate; mismatch (element types or numbers of dimensions differ); unsupported (2^22 pieces, or a target
/// with summands that is padded).
[[nodiscard]] Result<Problem> common_extents(const Layout& source, const Layout& target);

/// The places of this rank's tiles of common_extents in its dense row-major tiles of the whole arrays.
[[nodiscard]] Storages storages_within(const Layout& source, const Layout& target, Index rank);

/// Fills the elements of this rank's dense target tile that have no element in the source. `element` has the bytes of
/// one element; empty: zeros. Errors: mismatch (a size).
[[nodiscard]] Result<void> fill_padding(const Layout& source, const Layout& target, Index rank, Elements out,
                                        std::span<const std::byte> element = {});

/// One move between arrays whose extents differ, on one rank of a backend.
class PaddedMove : NonCopyable {
public:
    /// Collective: plans, prepares and starts the move of this rank's dense tiles, and fills the padding. Errors, on
    /// all ranks before any byte moves: those of redistribute and of common_extents.
    [[nodiscard]] static Result<std::unique_ptr<PaddedMove>> start(Backend& backend, const Layout& source,
                                                                   const Layout& target, ConstElements in, Elements out,
                                                                   std::span<const std::byte> element = {});
    /// Returns when `out` is complete. Errors: backend.
    [[nodiscard]] Result<void> wait();

private:
    explicit PaddedMove(Executor executor) : executor_(std::move(executor)) {}

    Executor executor_;
    std::unique_ptr<Memory> workspace_;
    std::unique_ptr<Bound> bound_;
    std::unique_ptr<Ticket> run_;
};

/// As redistribute, for arrays whose extents may differ. Each call plans and prepares anew. For many moves prepare an
/// Executor for common_extents with storages_within, and fill the padding once.
[[nodiscard]] Result<void> redistribute_padded(Backend& backend, const Layout& source, const Layout& target,
                                               ConstElements in, Elements out, std::span<const std::byte> element = {});

}  // namespace reshard
