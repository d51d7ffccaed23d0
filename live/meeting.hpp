// The ranks of a publisher, as a process of another job meets them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/tensors.hpp"
#include "live/transport/packet.hpp"
#include "live/transport/puts.hpp"
#include "live/transport/stream.hpp"

namespace reshard::live {

/// A connection to one rank of a publisher: packets on this machine, or a stream over TCP.
struct Connection {
    Descriptor socket;
    std::optional<Stream> stream = {};
    [[nodiscard]] int number() const { return stream ? stream->number() : socket.number(); }
};

/// Returns the next packet. Waits for it until `end`. Errors: backend (nothing comes, the connection is closed, or the
/// packet is of another protocol).
[[nodiscard]] Result<Arrival> next_packet(Connection& from, Clock::time_point end);

/// Returns the text that came with a packet of next_packet(). Errors: backend.
[[nodiscard]] Result<std::string> text_with(const Connection& from, Arrival& arrival);

/// A publisher, and a connection to each of its ranks.
struct Met {
    std::vector<Connection> ranks;
    std::vector<NamedTensor> tensors;
    bool checks_bytes = false;
    Devices devices = Devices::none;  // the publisher can put chunks through these
};

/// Connects to every rank of a publisher: at `endpoint`.0, ... if it is a path, else where rank 0 says. Errors:
/// mismatch (ranks of different publishers); as tensors_of; backend (no publisher until `end`).
[[nodiscard]] Result<Met> meet(const std::string& endpoint, Clock::time_point end);

}  // namespace reshard::live
