#include "live/place.hpp"

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::live {

bool is_path(const std::string& endpoint) { return endpoint.find('/') != std::string::npos; }

Result<Place> listen_at(const std::string& endpoint, Index rank) {
    if (is_path(endpoint)) {
        RESHARD_TRY(Listener & listener, Listener::open(fmt::format("{}.{}", endpoint, rank), Kind::packets));
        return Place{std::move(listener), endpoint};
    }
    const std::string host = endpoint.substr(0, endpoint.rfind(':'));
    if (rank == 0 || host != "0.0.0.0") {
        auto listener = Listener::open(rank == 0 ? endpoint : host + ":0", Kind::stream);
        if (!listener && rank == 0) return tl::unexpected(listener.error());
        if (listener) {
            std::string reached = fmt::format("{}:{}", host == "0.0.0.0" ? host_name() : host, listener->port());
            return Place{std::move(*listener), std::move(reached)};
        }
    }
    RESHARD_TRY(Listener & listener, Listener::open("0.0.0.0:0", Kind::stream));
    const int port = listener.port();
    return Place{std::move(listener), fmt::format("{}:{}", host_name(), port)};
}

}  // namespace reshard::live
