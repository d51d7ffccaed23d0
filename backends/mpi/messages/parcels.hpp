// Small moves between nodes. The data travel in the letters that let the ranks agree. So a run takes one message from
// each rank to each other rank.
#pragma once

#include <optional>

#include "backends/mpi/base/roll.hpp"
#include "backends/mpi/shm/bounce_pieces.hpp"

namespace reshard::mpi {

class Parcels final : public Enclosure {
public:
    /// Collective. Nothing on all ranks if the data of some rank do not fit its letters.
    [[nodiscard]] static Result<std::optional<Parcels>> make(MPI_Comm communicator, const RankStep& step);

    /// The buffers of the next run.
    void begin(const Buffers& buffers);
    [[nodiscard]] std::span<const std::byte> to(int rank) override;
    void take(int rank, std::span<const std::byte> data) override;
    /// Copies the parts that stay on this rank.
    void keep_own();

private:
    std::vector<PackedParts> outgoing_;  // by rank
    std::vector<PackedParts> incoming_;
    std::vector<BoxCopy> staying_;
    std::vector<std::byte> packed_;  // for one rank
    std::vector<const std::byte*> source_ = {nullptr};
    std::vector<std::byte*> target_ = {nullptr};
};

}  // namespace reshard::mpi
