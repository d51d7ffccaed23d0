#include "live/transport/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace reshard::live {
namespace {

constexpr Index header_bytes = sizeof(Packet);
constexpr Index payload_max = Index{1} << 30;
constexpr Index slice = Index{1} << 18;                  // memory is taken as bytes come
constexpr std::size_t waits_max = std::size_t{4} << 20;  // of small packets; one large one is always taken

bool is_transient(int code) { return code == EAGAIN || code == EINTR || code == ENOBUFS; }

}  // namespace

void Stream::queue(Packet packet, std::string_view payload) {
    if (waits_.size() - sent_ > waits_max) return;
    if (is_flushed()) {
        waits_.clear();
        sent_ = 0;
    }
    packet.bytes = static_cast<Index>(payload.size());
    waits_.append(reinterpret_cast<const char*>(&packet), sizeof packet);
    waits_.append(payload);
}

bool Stream::flush() {
    while (!is_flushed()) {
        const auto sent =
            send(socket_.number(), waits_.data() + sent_, waits_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return is_transient(errno);
        sent_ += static_cast<std::size_t>(sent);
    }
    return true;
}

void Stream::end() { shutdown(socket_.number(), SHUT_RDWR); }

Arrival Stream::receive() {
    Arrival arrival;
    if (std::exchange(is_new_, false)) came_ = 0;
    while (true) {
        const bool in_header = came_ < header_bytes;
        if (came_ == header_bytes && (!is_known(packet_) || packet_.bytes < 0 || packet_.bytes > payload_max)) {
            arrival.kind = Arrival::Kind::strange;
            return arrival;
        }
        const Index wanted = in_header ? header_bytes : header_bytes + packet_.bytes;
        if (!in_header && came_ == wanted) break;
        const Index place = came_ - header_bytes;  // in the payload
        const Index most = std::min(wanted - came_, slice);
        if (!in_header && std::ssize(payload_) < place + most) payload_.resize(static_cast<std::size_t>(place + most));
        char* const to = in_header ? reinterpret_cast<char*>(&packet_) + came_ : payload_.data() + place;
        const auto more = recv(socket_.number(), to, static_cast<std::size_t>(most), MSG_DONTWAIT);
        if (more < 0 && is_transient(errno)) return arrival;
        if (more <= 0) {
            arrival.kind = Arrival::Kind::closed;
            return arrival;
        }
        came_ += more;
    }
    is_new_ = true;
    arrival.kind = Arrival::Kind::packet;
    arrival.packet = packet_;
    return arrival;
}

}  // namespace reshard::live
