// A limit on the bytes that leave in a second.
#pragma once

#include <algorithm>

#include "live/transport/socket.hpp"

namespace reshard::live {

class RateLimit {
public:
    /// `bytes_per_second` of 0 is no limit.
    explicit RateLimit(Index bytes_per_second) : bytes_per_second_(bytes_per_second) {}

    /// True if more bytes may leave now.
    [[nodiscard]] bool allows(Clock::time_point now) const { return bytes_per_second_ == 0 || now >= next_; }
    [[nodiscard]] Clock::time_point next() const { return next_; }  ///< when it allows more

    /// So many bytes leave now. The next ones may leave when these would have left at the limit.
    void spend(Index bytes, Clock::time_point now) {
        if (bytes_per_second_ == 0) return;
        const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_);
        next_ = std::max(next_, now - slack) +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

private:
    static constexpr std::chrono::milliseconds slack{20};  // that a late thread may catch up with
    Index bytes_per_second_;
    Clock::time_point next_{};
};

}  // namespace reshard::live
