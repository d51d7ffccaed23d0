// One rank of a subscriber, as a rank of the publisher sees it. On the same machine it maps the memory of a version.
// Over TCP the publisher sends it the rows of the version.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "live/row_walk.hpp"
#include "live/tensors.hpp"
#include "live/transport/packet.hpp"
#include "live/transport/puts.hpp"
#include "live/transport/rate_limit.hpp"
#include "live/transport/segment.hpp"
#include "live/transport/stream.hpp"

namespace reshard::live {

class Reader {
public:
    virtual ~Reader() = default;
    [[nodiscard]] virtual int number() const = 0;  ///< of its connection, for poll()

    /// Sends a message. `memory` is the memory of the version, if the message grants it. Never waits.
    virtual void send(const Message& message, const std::shared_ptr<Segment>& memory) = 0;

    /// Sends the answer to a question for the status. Never waits.
    virtual void send_status(const std::string& text) = 0;

    /// What it said, or that it is gone.
    struct Heard {
        Arrival::Kind kind = Arrival::Kind::nothing;
        Message message = {};
        bool asks_status = false;  // instead of a message
    };
    [[nodiscard]] virtual Heard hear() = 0;

    [[nodiscard]] virtual Index bytes() const = 0;  ///< of each version that it takes; 0: not known yet

    [[nodiscard]] virtual std::string transport() const = 0;  ///< that carries the rows: ReaderStatus::transport

    [[nodiscard]] virtual bool has_to_write() { return false; }  ///< write() has work now
    virtual void write() {}                                      ///< sends what fits, and not for long
};

/// Reads from shared memory, over a connection that carries packets.
[[nodiscard]] std::unique_ptr<Reader> local_reader(Descriptor socket);

/// Gets its rows over TCP. `offsets` and `tiles` have the place and the bytes of each tile in the memory of a version.
/// Behind them lie the digests.
struct VersionMemory {
    std::vector<Index> offsets;
    std::vector<Index> tiles;
};
/// `limit` counts the bytes of all readers of the publisher's rank. If the subscriber has memory for puts, the rows go
/// through `puts`, which may be null.
[[nodiscard]] std::unique_ptr<Reader> remote_reader(Stream stream, const VersionMemory& memory, RateLimit& limit,
                                                    Puts* puts);

}  // namespace reshard::live
