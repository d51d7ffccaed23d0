// A publisher as one rank of a subscriber sees it: connections, the rows that this rank takes, the memory of versions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/protocol/message.hpp"
#include "live/tensors.hpp"
#include "live/transport/packet.hpp"
#include "live/transport/segment.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::live {

class Source {
public:
    /// Connects to every rank of the publisher at `endpoint`.0, ... and works out the rows. Errors: mismatch (a tensor
    /// that is not there, or has another shape or type; ranks of different publishers); as RowSchedule::make; backend.
    [[nodiscard]] static Result<Source> connect(const std::string& endpoint, std::span<const NamedTensor> wanted,
                                                Index rank, Clock::time_point end);

    [[nodiscard]] std::size_t rank_count() const { return peers_.size(); }
    [[nodiscard]] bool checks_bytes() const { return checks_bytes_; }
    [[nodiscard]] Index array(std::size_t tensor) const { return arrays_[tensor]; }  ///< its number at the publisher

    /// A message of a rank of the publisher, or the reason that it is lost.
    struct News {
        std::size_t rank = 0;
        std::optional<Message> message;
        std::string reason;
    };
    [[nodiscard]] std::optional<News> next();  ///< nullopt: nothing has come
    void wait(Clock::time_point end) const;    ///< until something may have come
    void send(std::size_t rank, const Message& message);

    /// Copies the rows of a granted version from one rank of the publisher. pre: the grant was returned by next().
    /// `offsets` has the place of each tile in `target`. Errors: backend.
    [[nodiscard]] Result<void> copy(std::size_t rank, Index version, std::span<std::byte> target,
                                    std::span<const Index> offsets);

private:
    struct Peer {
        Descriptor socket;
        bool is_lost = false;
        std::vector<Row> rows;
        std::vector<Index> offsets;                       // of its tiles in a version's memory
        std::optional<std::pair<Index, Segment>> memory;  // of the version that was granted last
    };
    [[nodiscard]] Result<void> plan(std::span<const NamedTensor> wanted, Index rank);
    [[nodiscard]] Result<Message> granted(Peer& peer, Arrival arrival) const;

    std::vector<Peer> peers_;
    std::vector<NamedTensor> tensors_;  // of the publisher
    std::vector<Index> arrays_;         // of each wanted tensor, the index into tensors_
    bool checks_bytes_ = false;
};

}  // namespace reshard::live
