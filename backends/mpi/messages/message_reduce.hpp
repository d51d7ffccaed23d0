// The reductions of one stage by messages: boxes are received piece by piece and added in the order of the summands.
#pragma once

#include "backends/mpi/messages/requests.hpp"

namespace reshard::mpi {

class MessageReduce {
public:
    explicit MessageReduce(RunState& state) : state_(state), sends_(state) {}

    /// Begins the reduction of the state's stage. A step that adds up has its stage to itself.
    void begin();
    /// True when everything has been added and sent.
    bool advance();
    /// True when MPI has all outgoing messages.
    [[nodiscard]] bool has_sent() const;
    void add_peers(std::set<int>& peers) const;
    void abandon(GivenUp& run);

private:
    void post_sends(std::size_t to);
    void post_landings();
    bool land();
    bool landed(const Message& message, MPI_Request& request);

    RunState& state_;
    Requests sends_;                       // sends_per_peer places for each peer
    std::vector<std::size_t> sends_next_;  // per peer: the next message to post
    std::vector<MPI_Request> landing_requests_;
    std::size_t posted_ = 0;  // landings (receives of a sum) that are posted or need no message
    std::size_t landed_ = 0;
    Index slots_taken_ = 0;
};

}  // namespace reshard::mpi
