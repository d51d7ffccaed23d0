// The earliest start of every activity in an order.
#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "synth/program/activities.hpp"

namespace reshard::program {

template <class Value>
using Earliest = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

/// The value of an order: its end, and among equal ends the sum of all starts.
struct Value {
    Index end = 0;
    Index starts = 0;
    friend auto operator<=>(const Value&, const Value&) = default;
};

/// Every resource serves in the order, and every place with a limit gives memory in the order. An activity starts as
/// soon as its inputs, its resources and its memory allow. No schedule that keeps the order starts anything earlier.
class Times {
public:
    explicit Times(const Activities& program);

    /// Sets start and end of each activity. nullopt: the order breaks a dependence, or memory never suffices.
    std::optional<Value> of(const Order& order);

    [[nodiscard]] const std::vector<Index>& start() const { return start_; }
    [[nodiscard]] const std::vector<Index>& end() const { return end_; }
    void swap(Times& other) noexcept {
        start_.swap(other.start_);
        end_.swap(other.end_);
    }

private:
    [[nodiscard]] std::optional<Index> ready(int activity) const;
    [[nodiscard]] std::optional<Index> take_memory(int activity, Index from);
    void release(int activity);

    const Activities& program_;
    std::vector<Index> start_, end_;
    std::vector<Index> busy_;     // of each resource, until when
    std::vector<Index> held_;     // of each place
    std::vector<Index> last_;     // of each place, the last start that took memory
    std::vector<Index> free_at_;  // of each buffer, the last end of a user so far
    std::vector<std::size_t> left_;
    std::vector<Earliest<std::pair<Index, Index>>> pending_;  // of each place: when, bytes
};

}  // namespace reshard::program
