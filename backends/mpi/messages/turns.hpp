// Chooses the next message to post. The channel with the most bytes left goes first, as in list scheduling. So the peer
// with the longest wait is not left for the end. Channels with the same bytes left take turns, message by message.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard::mpi {

/// Channels by number, with the bytes that each one has left. Each channel waits at most once.
class Turns {
public:
    /// A channel that waits already stays as it is.
    void add(std::size_t channel, Index left_bytes) {
        if (channel >= in_.size()) in_.resize(channel + 1, 0);
        if (std::exchange(in_[channel], 1) != 0) return;
        waiting_.push_back({left_bytes, channel});
        std::ranges::push_heap(waiting_, later);
    }
    /// Takes out the channel with the most bytes left, or the first of equal ones. Empty if no channel waits.
    [[nodiscard]] std::optional<std::size_t> next() {
        if (waiting_.empty()) return std::nullopt;
        std::ranges::pop_heap(waiting_, later);
        const std::size_t channel = waiting_.back().channel;
        waiting_.pop_back();
        in_[channel] = 0;
        return channel;
    }

private:
    struct Waiting {
        Index left_bytes = 0;
        std::size_t channel = 0;
    };
    static bool later(const Waiting& a, const Waiting& b) {
        return a.left_bytes != b.left_bytes ? a.left_bytes < b.left_bytes : a.channel > b.channel;
    }

    std::vector<Waiting> waiting_;  // a heap
    std::vector<char> in_;          // per channel
};

}  // namespace reshard::mpi
