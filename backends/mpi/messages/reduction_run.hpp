// Runs MPI's own reduction of one stage: its parts one after another, two of them in flight.
#pragma once

#include "backends/mpi/messages/requests.hpp"

namespace reshard::mpi {

class ReductionRun {
public:
    explicit ReductionRun(RunState& state) : state_(state), requests_(state) {}

    /// Begins the reduction of the state's stage. At most one of its steps reduces.
    void begin();
    /// True when all parts are in the target.
    bool advance();
    /// True when MPI has all parts.
    [[nodiscard]] bool has_sent() const { return step_ == nullptr || next_ == step_->reduction->parts.size(); }
    void add_peers(std::set<int>& peers) const { requests_.add_peers(peers); }
    void abandon(GivenUp& run);

private:
    void post();

    RunState& state_;
    Requests requests_;  // a place for each staging slot
    const MessageStep* step_ = nullptr;
    std::size_t number_ = 0;  // the step's number in the stage
    std::size_t next_ = 0;    // the next part to post
    std::array<std::size_t, staging_slots> parts_{};
};

}  // namespace reshard::mpi
