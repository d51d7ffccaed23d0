// Which part of a received box stores and which adds: the first receive to cover an element stores it, later ones add.
#pragma once

#include "reshard/planner/schedule.hpp"

namespace reshard {

struct SplitReceive {
    Box box;
    bool adds = false;  ///< to what earlier receives stored; else it stores
    friend bool operator==(const SplitReceive&, const SplitReceive&) = default;
};

/// For each receive, in order, the boxes into which it falls. With Combine::copy each is one box that stores. With any
/// other Combine the boxes are disjoint, and each lies wholly inside or wholly outside of what earlier receives cover.
[[nodiscard]] std::vector<std::vector<SplitReceive>> arrivals(const Schedule& schedule);

}  // namespace reshard
