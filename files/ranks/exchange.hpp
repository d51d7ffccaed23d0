// A round between the ranks' shares, which they read or write, and the tiles that they have: plans of synthesize, run
// by the executor.
#pragma once

#include "files/ranks/parts.hpp"
#include "reshard/redistribute.hpp"

namespace reshard::files {

/// A tensor on this rank.
struct RankTensor {
    std::shared_ptr<const Layout> layout;  ///< in its element type on the ranks
    std::span<std::byte> bytes;            ///< of this rank's tile, dense and row-major; only read when it is saved
};

class Exchange {
public:
    explicit Exchange(Backend& backend) : backend_(&backend) {}

    /// Which way a round goes.
    enum class Way { to_tiles, to_shares };

    /// Collective. Part i's share is at offsets[i] of `shares`, dense. Errors: as synthesize and Executor; backend.
    [[nodiscard]] Result<void> run(const Round& round, Way way, std::span<const RankTensor> tensors,
                                   std::span<std::byte> shares, std::span<const Index> offsets);

private:
    Backend* backend_;
    PlanCache plans_;
};

}  // namespace reshard::files
