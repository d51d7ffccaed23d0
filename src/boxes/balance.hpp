// Divides work among devices so that no device carries much more than another.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// An element adds this to one load.
struct LoadShare {
    std::size_t load = 0;
    Index times = 0;  ///< may be below 0
};

/// Elements that any of several options can take, in parts.
struct Divided {
    Index elements = 0;
    std::vector<std::vector<LoadShare>> options;  ///< what each option adds for an element; each load at most once
    std::vector<Index> parts;                     ///< the result: the elements of each option
};

/// Loads that happen at the same time, so that their largest one counts.
struct LoadGroup {
    std::size_t loads = 0;  ///< how many; they follow the loads of the group before
    Index price = 1;        ///< of an element of the largest load
};

/// Divides each entry among its options, so that the sum over groups of price x largest load is small. Loads start at
/// `loads`, without the entries. This is a linear program. It is solved by descent: each round lowers the limit of one
/// group, raises limits of others for a part of the gain, and moves parts away from loads above their limits. A round
/// is kept if the sum becomes less. The answer is mostly within a few percent of the least sum, and it depends on
/// nothing but the arguments. pre: each entry has an option.
void balance(std::vector<Divided>& entries, const std::vector<LoadGroup>& groups, std::vector<Index> loads);

}  // namespace reshard
