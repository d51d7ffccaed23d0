// How long work takes that is cut as a run is, measured where it runs.
#pragma once

#include <functional>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// What work takes by its length, for PieceWork::seconds: between the lengths that were measured a straight line.
/// Short pieces of work take longer for an index: a product of few rows spends its time on reading the other matrix.
struct WorkTimes {
    std::vector<Index> lengths;   ///< ascending, in indices of a block
    std::vector<double> seconds;  ///< of each; ranks that compute alike take the largest of theirs
    /// Of as many indices.
    [[nodiscard]] double operator()(Index begin, Index end) const;
};

/// Times `work` on indices of a block of `block`: on block / places of them, on twice as many, and so on up to all.
/// Of each length the median of `rounds` turns of two milliseconds or, where that is shorter, over the block once.
/// pre: 1 <= places, 1 <= block, 1 <= rounds.
[[nodiscard]] WorkTimes measure_work(Index block, const std::function<void(Index begin, Index end)>& work,
                                     Index places = 64, int rounds = 3);

}  // namespace reshard
