// The reductions of one stage by messages: boxes are received one after another and added in the order of the summands.
#pragma once

#include "backends/mpi/messages/requests.hpp"

namespace reshard::mpi {

class MessageReduce {
public:
    explicit MessageReduce(RunState& state) : state_(state), sends_(state) {}

    /// Begins the reductions of the state's stage; then each of its steps, in order.
    void begin();
    void begin_step(std::size_t number);
    /// True when all has been added and sent.
    bool advance();
    void add_peers(std::set<int>& peers) const;
    void give_up(GivenUp& run);

private:
    void post_landings();
    bool land();
    bool landed(const Message& message, MPI_Request& request);

    RunState& state_;
    Requests sends_;
    std::vector<MPI_Request> landing_requests_;
    std::size_t posted_ = 0;  // landings (receives of a sum) that are posted, or that need no message
    std::size_t landed_ = 0;
    Index slots_taken_ = 0;
};

}  // namespace reshard::mpi
