#include "live/transport/packet.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace reshard::live {

bool is_word(const Packet& packet) { return packet.word <= static_cast<std::uint32_t>(Word::release); }

bool is_known(const Packet& packet) {
    return packet.magic == Packet{}.magic && packet.protocol == protocol_number &&
           (is_word(packet) || (packet.word >= hello && packet.word <= landed_word));
}

Packet packet_of(const Message& message) {
    Packet packet;
    packet.word = static_cast<std::uint32_t>(message.word);
    packet.generation = message.generation;
    packet.version = message.version;
    packet.content = message.content;
    return packet;
}

Message message_of(const Packet& packet) {
    return {static_cast<Word>(packet.word), packet.generation, packet.version, packet.content};
}

bool send_packet(const Descriptor& to, const Packet& packet, int descriptor) {
    iovec part{const_cast<Packet*>(&packet), sizeof packet};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    if (sendmsg(to.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS;
}

Arrival receive_packet(const Descriptor& from) {
    Arrival arrival;
    iovec part{&arrival.packet, sizeof arrival.packet};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto came = recvmsg(from.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return arrival;
    if (came <= 0) {
        arrival.kind = Arrival::Kind::closed;
        return arrival;
    }
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header), sizeof number);
        arrival.descriptor = Descriptor(number);
    }
    const bool known = came == sizeof(Packet) && is_known(arrival.packet);
    arrival.kind = known ? Arrival::Kind::packet : Arrival::Kind::strange;
    return arrival;
}

}  // namespace reshard::live
