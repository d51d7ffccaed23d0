// Measures how long work takes that is cut like a run.
#pragma once

#include <functional>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// The time of work by its length, for PieceWork::seconds; interpolated linearly between the measured lengths.
/// Short pieces take longer per index: a product of few rows spends its time on reading the other matrix.
struct WorkTimes {
    std::vector<Index> lengths;   ///< ascending, in indices of a block
    std::vector<double> seconds;  ///< one per length; ranks that do the same work share their maximum
    /// Seconds of work on end - begin indices.
    [[nodiscard]] double operator()(Index begin, Index end) const;
};

/// Times `work` on parts of a block of `block` indices: on block / places of them, on twice as many, and so on up to
/// all. Each length gets the median of `rounds` rounds. A round takes two milliseconds, or goes over the block once if
/// that is shorter. pre: 1 <= places, 1 <= block, 1 <= rounds.
[[nodiscard]] WorkTimes measure_work(Index block, const std::function<void(Index begin, Index end)>& work,
                                     Index places = 64, int rounds = 3);

}  // namespace reshard
