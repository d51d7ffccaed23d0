// The place where a rank of a publisher listens.
#pragma once

#include <string>

#include "live/transport/socket.hpp"

namespace reshard::live {

struct Place {
    Listener listener;
    std::string endpoint;  ///< for subscribers
};

[[nodiscard]] bool is_path(const std::string& endpoint);  ///< it has a `/`; else it is `host:port`

/// Listens at a publisher's endpoint. At a path, each rank has a socket of its own. At `host:port` only rank 0 has that
/// port. The others take a free one of the same host, or of their own if they are elsewhere. Errors: as Listener::open.
[[nodiscard]] Result<Place> listen_at(const std::string& endpoint, Index rank);

}  // namespace reshard::live
