// The rings that programs write by hand instead of pieces. Whole shards travel from rank to rank while the one before
// is used, or while the next summand is made.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard::overlap {

/// Messages to one peer and from another, of at most so many elements each.
class RingMessages {
public:
    explicit RingMessages(Index elements_max) : elements_max_(elements_max) {}
    void receive(float* data, Index count, int from);
    void send(const float* data, Index count, int to);
    void look();  ///< makes progress
    void wait();  ///< for all

private:
    Index elements_max_;
    std::vector<MPI_Request> requests_;
};

/// `block` is a rank's number; `look` is called about every half millisecond.
using BlockWork = std::function<void(Index block, const std::function<void()>& look)>;

/// Collective. `all` has a shard of `count` elements for each rank, and holds this rank's own. The others arrive, and
/// each is used (`work`) while the next is on its way.
void ring_gather(float* all, Index count, Index elements_max, const BlockWork& work);

/// Collective. `made` has a shard of `count` elements for each rank, which `work` makes; `sum` gets the sum of all
/// ranks' shards for this one. A sum travels on while the next summand is made.
void ring_scatter(const float* made, float* sum, Index count, Index elements_max, const BlockWork& work);

}  // namespace reshard::overlap
