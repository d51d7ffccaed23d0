// Runs the channels of one stage. A few messages of each channel are in flight while others are packed.
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
    /// True when everything is sent and received. Failed messages are noted, and the channels go on.
    bool advance();
    /// True when MPI has all outgoing messages.
    [[nodiscard]] bool has_sent() const;
    /// True when all incoming messages lie where they belong.
    [[nodiscard]] bool has_received() const { return receiving_ == 0; }
    void add_peers(std::set<int>& peers) const { requests_.add_peers(peers); }
    void abandon(GivenUp& run);

private:
    // The progress of a channel. Its messages in flight have places among the requests.
    struct Flow {
        std::size_t next = 0;    // the next message to post
        Index left_bytes = 0;    // of that message and all later ones
        std::size_t first = 0;   // its first place
        std::size_t places = 0;  // no more than it has messages
        std::array<bool, channel_slots> taken{};
    };
    // A message in flight.
    struct Place {
        std::size_t channel = 0;
        std::size_t piece = 0;
    };

    void post();
    bool post_next(std::size_t channel);
    void post_piece(std::size_t place);
    void arrived(const Place& place, bool well);
    [[nodiscard]] std::size_t under_way_max(const Channel& channel) const;

    RunState& state_;
    Requests requests_;
    std::vector<Flow> flows_;
    std::vector<Place> places_;
    std::size_t sending_ = 0;    // channels with something left to send
    std::size_t receiving_ = 0;  // messages that have not arrived
    Turns turns_;                // of the channels that may have a message to post
};

}  // namespace reshard::mpi
