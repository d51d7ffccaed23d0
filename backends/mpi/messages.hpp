// Arrays that move step by step in messages: their datatypes, groups and staging, made once.
#pragma once

#include "backends/mpi/arena.hpp"
#include "backends/mpi/run.hpp"

namespace reshard::mpi {

/// An array of the list, and its number there.
struct MessagePlan {
    std::size_t array = 0;
    const RankPlan* plan = nullptr;
};

class Messages {
public:
    /// Collective over the communicator, which must outlive it.
    Result<void> make(MPI_Comm communicator, const std::vector<MessagePlan>& plans, Arena& arena,
                      std::chrono::milliseconds patience);

    [[nodiscard]] bool empty() const { return arrays_.empty(); }
    [[nodiscard]] Index staging_bytes() const { return staging_slots * slot_bytes_; }
    [[nodiscard]] std::unique_ptr<Bound> bind(std::span<const Buffers> buffers);

private:
    [[nodiscard]] Result<std::vector<char>> votes_on_gathers(const std::vector<MessagePlan>& plans);
    Result<void> make_steps(const std::vector<MessagePlan>& plans, const std::vector<char>& gathers, Arena& arena);
    Result<void> make_groups();
    template <class Collective>
    Result<void> join(Collective& collective);

    MPI_Comm communicator_ = MPI_COMM_NULL;
    std::chrono::milliseconds patience_{};
    std::map<std::vector<Index>, Communicator> groups_;
    std::vector<std::size_t> numbers_;  // of the arrays, in the list
    std::vector<std::vector<WireStep>> arrays_;
    std::size_t steps_ = 0;
    Index slot_bytes_ = 0;
    std::unique_ptr<Memory> staging_;
};

}  // namespace reshard::mpi
