// A TCP connection between the two jobs. It carries packets with bytes behind them, and never waits.
#pragma once

#include <string_view>

#include "live/transport/packet.hpp"

namespace reshard::live {

class Stream {
public:
    explicit Stream(Descriptor socket) : socket_(std::move(socket)) {}

    [[nodiscard]] int number() const { return socket_.number(); }

    /// Queues a packet; flush() sends it. If more than a few MiB wait already, it is lost, which the protocol
    /// bears.
    void queue(Packet packet, std::string_view payload = {});
    [[nodiscard]] bool flush();                                               ///< sends what fits. False: closed
    void end();                                                               ///< closes the connection at both ends
    [[nodiscard]] bool is_flushed() const { return sent_ == waits_.size(); }  ///< nothing waits

    /// The next packet that has come with all its bytes, which payload() shows until the next call.
    [[nodiscard]] Arrival receive();
    [[nodiscard]] std::string_view payload() const {
        return {payload_.data(), static_cast<std::size_t>(packet_.bytes)};
    }

private:
    Descriptor socket_;
    std::string waits_;     // to be sent
    std::size_t sent_ = 0;  // the part of it that is sent
    Packet packet_;         // that comes
    Index came_ = 0;        // bytes of the packet and its payload
    bool is_new_ = true;    // the packet before was returned
    std::vector<char> payload_;
};

}  // namespace reshard::live
