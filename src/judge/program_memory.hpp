// Bytes that a device holds over time, from the lifetimes of arrays alone.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// An activity on one clock: when it starts and ends, and its place in the order.
struct Moment {
    Index start = 0;
    Index end = 0;
    Index place = 0;
};

/// Collects when bytes are taken and given back. At one time, activities that end give back first. Then activities take
/// in their order, and an activity of no length gives back right after it has taken.
class Ledger {
public:
    /// Held from the beginning.
    void hold(Index bytes) { begin_ += bytes; }
    void take(const Moment& by, Index bytes) { changes_.push_back({by.start, 2 * by.place, bytes}); }
    /// When the last of `users` has ended. pre: there is one.
    void give_back(const std::vector<Moment>& users, Index bytes);
    /// When `by` starts, just before it takes.
    void hand_over(const Moment& by, Index bytes) { changes_.push_back({by.start, 2 * by.place, -bytes}); }

    struct Held {
        Index time = 0;
        Index bytes = 0;
    };
    /// Sorts the changes; sets the most that is held, and returns what is held from each time on.
    [[nodiscard]] std::vector<Held> held(Index& peak);

private:
    struct Change {
        Index time = 0;
        Index turn = 0;  // among the changes of one time
        Index bytes = 0;
        friend auto operator<=>(const Change&, const Change&) = default;
    };
    Index begin_ = 0;
    std::vector<Change> changes_;
};

}  // namespace reshard
