// A walk over the places of a grid. Every loop over a number of dimensions that is known only at run time uses it.
#pragma once

#include <span>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Calls visit(place) for every place of a grid with these counts, row-major. A grid without dimensions has one place.
/// Stops at the first error and returns it.
template <class Visit>
[[nodiscard]] Result<void> for_each_place(std::span<const Index> counts, const Visit& visit) {
    for (const Index count : counts)
        if (count == 0) return {};
    std::vector<Index> place(counts.size(), 0);
    while (true) {
        if (auto done = visit(place); !done) return done;
        std::size_t k = counts.size();
        while (k > 0 && ++place[k - 1] == counts[k - 1]) place[--k] = 0;
        if (k == 0) return {};
    }
}

}  // namespace reshard
