// The channels of one stage: a few messages of each under way, and packing meanwhile.
#pragma once

#include <array>

#include "backends/mpi/messages/requests.hpp"
#include "backends/mpi/messages/turns.hpp"

namespace reshard::mpi {

class ChannelRun {
public:
    explicit ChannelRun(RunState& state) : state_(state), requests_(state) {}

    /// Begins the channels of the state's stage.
    void begin();
    /// True when all is sent and received. Messages that failed are noted; channels go on.
    bool advance();
    /// True when MPI has all messages that are sent.
    [[nodiscard]] bool has_sent() const;
    void add_peers(std::set<int>& peers) const { requests_.add_peers(peers); }
    void give_up(GivenUp& run);

private:
    static constexpr std::size_t in_flight_max = 8;  // messages of one channel; twice what may be sent

    // How far a channel is. Its messages in flight have in_flight_max places among the requests.
    struct Flow {
        std::size_t next = 0;  // to be posted
        Index left_bytes = 0;  // of that one and those after it
        std::array<std::size_t, in_flight_max> pieces{};
        std::array<bool, channel_slots> taken{};
    };

    void post();
    bool post_next(std::size_t channel);
    void post_piece(std::size_t channel, std::size_t at);
    void arrived(std::size_t channel, std::size_t at, bool well);

    RunState& state_;
    Requests requests_;
    std::vector<Flow> flows_;
    Turns turns_;  // of the channels of which something may be posted
};

}  // namespace reshard::mpi
