// Moves a round between shares, which ranks read or write, and the tiles of ranks. The executor runs plans of
// synthesize.
#pragma once

#include "files/ranks/parts.hpp"
#include "reshard/redistribute.hpp"

namespace reshard::files {

/// A tensor on this rank.
struct RankTensor {
    std::shared_ptr<const Layout> layout;  ///< with the element type on the ranks
    std::span<std::byte> bytes;            ///< of this rank's tile, dense and row-major; a save only reads them
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

private:
    Backend* backend_;
    PlanCache plans_;
};

}  // namespace reshard::files
