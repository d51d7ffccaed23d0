// Ranks in one process: always built, the oracle of the other backends.
#pragma once

#include <chrono>

#include "reshard/algebra/backend.hpp"

/// Ranks of one process.
namespace reshard::local {

/// N ranks that share this process. Each rank's backend may be driven by its own thread, or all by one thread that
/// starts every rank before it waits on any. A wait that no peer ever joins ends in Code::backend after `timeout`.
class World {
public:
    /// So many ranks. pre: at least one.
    explicit World(Index ranks, std::chrono::milliseconds timeout = std::chrono::seconds(60));
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] Backend& rank(Index rank);  ///< valid as long as the world
    [[nodiscard]] Index size() const;         ///< ranks

    struct Shared;  ///< what the ranks share; private to the backend

private:
    std::unique_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Backend>> backends_;
};

}  // namespace reshard::local
