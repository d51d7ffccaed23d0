// Runs of an executor: the buckets of a list one after another, pieces two at a time or on a queue, and what all runs
// of one executor share.
#pragma once

#include <atomic>

#include "reshard/execute.hpp"
#include "src/execute/rebindable.hpp"

namespace reshard {

/// Memory that a run touches, for the overlap check.
struct BufferRange {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    BufferId buffer = BufferId::source;
    std::size_t array = 0;
    std::size_t bucket = 0;
};

/// The bound buckets, in order, or the pieces of one that overlap, in the order of travel. The Executor's prepared
/// buckets outlive them.
struct BoundBuckets {
    std::vector<std::shared_ptr<Prepared>> prepared;
    std::vector<std::unique_ptr<Bound>> bounds;
    std::vector<Rebindable*> rebindable = {};  ///< the same; empty if one cannot take other buffers
    std::size_t first = 0;                     ///< the first bucket of the list, and how many there are
    std::size_t count = 0;
    /// For each RankStep that the backend runs in a bucket, its position among the steps of all arrays that were bound.
    std::vector<std::vector<std::size_t>> steps;
    std::vector<std::size_t> place_of = {};  ///< of pieces, by number; none of buckets

    /// Fills `rebindable`.
    void find_rebindable();
    /// True where the backend runs on queues of a device.
    [[nodiscard]] bool queued() const;
    // Room for a bind to work in.
    std::vector<Buffers> buffers_of = {};  ///< by array of the list
    std::vector<Buffers> of_pieces = {};
    std::vector<BufferRange> ranges = {};
    bool still_bound = false;  ///< to buffers_of, although nobody holds the buckets
    /// Of the executor, while somebody holds the buckets.
    std::shared_ptr<Executor::RunState> state = {};

    /// The most that are on their way at once. With more than two, a transport that serves all equally would complete
    /// all pieces at the end. A queue completes them one after the other.
    [[nodiscard]] std::size_t in_flight_max() const;
};

/// The objects of a bind that nobody holds any more. The next bind takes them. Safe to use from several threads.
class SpareBuckets : NonCopyable {
public:
    ~SpareBuckets() { delete held_.load(); }
    /// Null if nothing is there.
    [[nodiscard]] std::unique_ptr<BoundBuckets> take() {
        return std::unique_ptr<BoundBuckets>(held_.exchange(nullptr));
    }
    /// Drops the buffers, and keeps the rest.
    void put(std::unique_ptr<BoundBuckets> buckets) {
        buckets->still_bound = true;
        for (Rebindable* one : buckets->rebindable) buckets->still_bound = one->unbind() && buckets->still_bound;
        delete held_.exchange(buckets.release());
    }

private:
    std::atomic<BoundBuckets*> held_ = nullptr;
};

/// Nothing starts after a failed run, since that leaves peers in the middle of a step.
struct Executor::RunState {
    bool in_flight = false;
    bool failed = false;
    Error first_error = {};
    std::vector<std::weak_ptr<Prepared>> prepared = {};  ///< all of the list's
    SpareBuckets spare = {};
    /// One call moves the only array of the list by these, one after another. Empty or null if it cannot.
    std::vector<AtOnce*> at_once = {};

    /// Peers that wait in any bucket are told.
    void fail(const Error& error);
    /// Other runs of this thread must go on during a wait, so then a move needs a run.
    [[nodiscard]] bool moves_at_once(bool agrees) const;
    /// pre: moves_at_once, and the buffers fit.
    Result<void> move_at_once(const Buffers& buffers, const Agreed* agreed);
};

/// "bind failed: the source of array 0 ..."
[[nodiscard]] Error named(std::string_view call, const Error& error);

/// Runs the buckets in order, each when the one before it is done, or all at once if a queue keeps the order. A piece
/// starts when the piece before the last has arrived and the last has been sent. Runs that share `state` are in flight
/// one at a time. A wait for one run advances all others that its thread has started, since peers may wait for them in
/// another order. If the buckets can take other buffers, they become the state's spare ones once nobody holds them.
[[nodiscard]] std::unique_ptr<Bound> guarded(std::unique_ptr<BoundBuckets> buckets,
                                             const std::shared_ptr<Executor::RunState>& state);
[[nodiscard]] inline std::unique_ptr<Bound> guarded(BoundBuckets buckets,
                                                    const std::shared_ptr<Executor::RunState>& state) {
    return guarded(std::make_unique<BoundBuckets>(std::move(buckets)), state);
}

}  // namespace reshard
