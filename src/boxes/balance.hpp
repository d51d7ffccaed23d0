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
    std::vector<std::vector<LoadShare>> options;  ///< what each option adds for an element
    std::vector<Index> parts;                     ///< the result: the elements of each option
};

/// Divides each entry among its options. Loads start at `loads`, without the entries. First it keeps each load below
/// its cap if it can; index_max is no cap. Then it makes the sum of the squares of all loads without a cap small. It
/// moves parts between options while that helps. The answer depends on nothing but the arguments. pre: each entry has
/// an option; one cap for each load.
void balance(std::vector<Divided>& entries, std::vector<Index> loads, const std::vector<Index>& caps);

}  // namespace reshard
