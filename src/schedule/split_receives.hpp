// Divides received boxes into parts that store and parts that add. The first receive that covers an element stores it,
// later ones add.
#pragma once

#include "reshard/planner/schedule.hpp"

namespace reshard {

struct SplitReceive {
    Box box;
    bool adds = false;  ///< to the result of earlier receives; else it stores
    friend bool operator==(const SplitReceive&, const SplitReceive&) = default;
};

/// Returns the boxes of each receive, in order. With Combine::copy each receive is one box that stores. With any other
/// Combine the boxes are disjoint, and earlier receives cover each of them wholly or not at all.
[[nodiscard]] std::vector<std::vector<SplitReceive>> arrivals(const Schedule& schedule);

}  // namespace reshard
