// The packets between the two jobs. Numbers have the bytes of the machine, and the magic number tells other orders.
#pragma once

#include "live/protocol/message.hpp"
#include "live/transport/socket.hpp"

namespace reshard::live {

/// The number of the protocol. Ends with different numbers refuse each other.
inline constexpr std::uint32_t protocol_number = 4;

/// One packet. The first one of a publisher says who it is, and carries the text of its tensors. A grant carries the
/// version. On one machine both come as a segment. Over TCP the text and the digests follow the packet.
struct Packet {
    std::uint32_t magic = 0x64727372;  // "rsrd"
    std::uint32_t protocol = protocol_number;
    std::uint32_t word = 0;  // of the message; hello: the publisher's first packet
    std::uint32_t rank = 0;
    std::uint32_t ranks = 0;
    std::uint16_t checks_bytes = 0;
    std::uint16_t devices = 0;  // hello: the publisher can put chunks through these (Devices)
    std::int64_t generation = 0;
    std::int64_t version = 0;
    std::uint64_t content = 0;
    std::int64_t bytes = 0;  // of the segment, or that follow the packet; of `want` on one machine: of its rows
};
inline constexpr std::uint32_t hello = 100;
inline constexpr std::uint32_t rows_word = 101;     // over TCP: the rows that the subscriber wants of each version
inline constexpr std::uint32_t data_word = 102;     // over TCP: the next bytes of the rows of a generation
inline constexpr std::uint32_t status_word = 103;   // asks for the state of the session; the answer has it as text
inline constexpr std::uint32_t landing_word = 104;  // the subscriber's memory for chunks that are put
inline constexpr std::uint32_t landed_word = 105;   // a chunk is there, its bytes are `content`; back: it is taken

[[nodiscard]] bool is_word(const Packet& packet);   ///< it carries a message
[[nodiscard]] bool is_known(const Packet& packet);  ///< it is of this protocol

[[nodiscard]] Packet packet_of(const Message& message);
[[nodiscard]] Message message_of(const Packet& packet);

/// Sends a packet, with a descriptor if it is not negative. Never waits: a packet that does not fit the socket's buffer
/// is lost, which the protocol bears. False: the connection is closed.
[[nodiscard]] bool send_packet(const Descriptor& to, const Packet& packet, int descriptor = -1);

/// What came: nothing yet, a packet, or the end of the connection.
struct Arrival {
    enum class Kind { nothing, packet, closed, strange };
    Kind kind = Kind::nothing;
    Packet packet;
    Descriptor descriptor;
};
[[nodiscard]] Arrival receive_packet(const Descriptor& from);

}  // namespace reshard::live
