// What happens to each box that arrives: the first one to cover an element stores it, later ones add to it.
#pragma once

#include "reshard/algebra/schedule.hpp"

namespace reshard {

struct SplitReceive {
    Box box;
    bool adds = false;  ///< to what earlier receives stored; else it stores
    friend bool operator==(const SplitReceive&, const SplitReceive&) = default;
};

/// Per receive, in order, the boxes into which it falls. With Combine::copy each is one box that stores. With
/// any Combine but copy the boxes are disjoint, each lies wholly inside or outside of what earlier receives cover.
[[nodiscard]] std::vector<std::vector<SplitReceive>> arrivals(const Schedule& schedule);

}  // namespace reshard
