// Runs of an executor: the buckets of a list one after another, and what all runs of one executor share.
#pragma once

#include "reshard/execute.hpp"

namespace reshard {

/// A failed run leaves peers in the middle of a step; nothing starts after it.
struct Executor::RunState {
    bool in_flight = false;
    bool failed = false;
    Error first_error = {};
    std::vector<std::weak_ptr<Prepared>> buckets = {};  ///< all of the list's

    /// Peers that wait in any bucket are told.
    void fail(const Error& error);
};

/// "bind failed: the source of array 0 ..."
[[nodiscard]] Error named(std::string_view call, const Error& error);

/// What was bound, bucket by bucket; what made it outlives it.
struct BoundBuckets {
    std::vector<std::shared_ptr<Prepared>> prepared;
    std::vector<std::unique_ptr<Bound>> bounds;
    /// Of each RankStep that the backend runs in a bucket its place among those of all arrays that were bound.
    std::vector<std::vector<std::size_t>> steps;
};

/// Runs them in order, each when the one before is done, or all at once where a queue keeps the order. One run at a
/// time of all that shares `state`. Who waits for one run advances all others that its thread has started: peers may
/// wait for them in another order.
[[nodiscard]] std::unique_ptr<Bound> guarded(BoundBuckets buckets, std::shared_ptr<Executor::RunState> state);

}  // namespace reshard
