// The reads of one rank of a subscriber, for the status of the session; and that status as text.
#pragma once

#include <optional>
#include <string_view>

#include "live/protocol/message.hpp"
#include "live/transport/socket.hpp"
#include "reshard/live/status.hpp"

namespace reshard::live {

class ReadLog {
public:
    explicit ReadLog(std::string peer) { status_.peer = std::move(peer); }
    void granted(const Message& message, Clock::time_point now);  ///< the publisher has said this
    void said(const Message& message, Clock::time_point now);     ///< the reader has said this
    [[nodiscard]] Index ended() const { return ended_; }          ///< reads that have ended
    /// `bytes` of each version come by the transport.
    [[nodiscard]] ReaderStatus status(Index bytes, std::string transport) const;

private:
    ReaderStatus status_;
    Index generation_ = 0;  // of the read under way, or of the last one
    Index ended_ = 0;
    Clock::time_point start_;
};

/// Lines of words.
[[nodiscard]] std::string text_of(const RankStatus& status);
[[nodiscard]] std::optional<RankStatus> status_of(std::string_view text);  ///< nullopt: the text is no status

}  // namespace reshard::live
