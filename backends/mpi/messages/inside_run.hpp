// Stages whose data stay in the node, run within one call. No message of MPI takes part.
#pragma once

#include <functional>

#include "backends/mpi/messages/stage.hpp"

namespace reshard::mpi {

/// The runs of one array. They keep the addresses of the last buffers, and find them again only if these change.
class InsideRun {
public:
    /// Lets all ranks agree before a byte of a target is written. The messages of `carrier`, which may be null, say
    /// that this rank has come to agree.
    using Agree = std::function<Result<void>(Carrier* carrier)>;

    /// True if nothing of these stages goes to another node or waits for MPI.
    [[nodiscard]] static bool fits(std::span<const Stage> stages);

    /// pre: no memory is registered. `orders` holds the steps of each stage.
    Result<void> bind(std::span<const Stage> stages, std::span<const std::vector<StageStep>> orders, Arena& arena,
                      const Buffers& buffers);
    /// So many `ranks` agree. An interrupt ends the wait. Errors: as a run, or as `agree` returns. pre: the buffers are
    /// bound.
    Result<void> run(std::span<const Stage> stages, std::size_t ranks, const Agree& agree);

private:
    void fill_and_copy(const Stage& stage) const;

    Buffers buffers_;
    std::vector<StageBuffers> addresses_;   // per stage
    std::optional<std::uint64_t> kept_at_;  // Arena::changes() at the bind
};

}  // namespace reshard::mpi
