// Runs. Bound buffers are started; a run in flight is polled, waited for, and told which pieces it may send.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Base of objects that have one owner and one address.
struct NonCopyable {
    NonCopyable() = default;
    ~NonCopyable() = default;
    NonCopyable(const NonCopyable&) = delete;
    NonCopyable& operator=(const NonCopyable&) = delete;
};

/// A run in flight. Dropping it waits. An error names the step, and the peer if it is known. After an error the
/// contents of the target are unspecified.
class Ticket : NonCopyable {
public:
    virtual ~Ticket() = default;
    virtual Result<bool> test() = 0;  ///< true once all is delivered; makes progress; never blocks
    virtual Result<void> wait();      ///< returns when all is delivered on this rank; by wait_for
    /// Like wait, but returns false after about this long. The default tests once.
    virtual Result<bool> wait_for(Index microseconds);

    /// How many pieces of the target are complete on this rank and may be read. Pieces complete in
    /// their order of travel (piece_at); later pieces may be half written. A piece is a piece of an overlapped Split,
    /// or else a bucket of a list. Only a list of several buckets has more than one. Makes progress; never blocks. The
    /// transport rests between two calls: a call about every half millisecond hides all that can be hidden
    /// (docs/overlap.md).
    virtual Result<std::size_t> arrived();
    /// Says that this rank's part of the source of a piece is complete and may be read from now on. For a run that was
    /// started with offers withheld. Offers may come in any order. A piece is sent once it and all pieces before it
    /// have been offered on every rank. Never blocks. Errors: usage if nothing is withheld, if the piece does not
    /// exist, or if it was offered before; the run goes on. Until all pieces are offered, test and wait_for return
    /// false. wait fails with usage once only unoffered pieces remain. Dropping the run before that is a failure, and
    /// the peers learn of it (with NCCL only after their timeout). Peers wait for an offer as long as for a missing
    /// rank.
    virtual Result<void> offer(std::size_t piece);
    /// Like offer, for a source that is complete once all work that is on `queue` now is done. Errors also: unsupported
    /// if the backend has no queues; backend.
    virtual Result<void> offer_on(std::size_t piece, void* queue);
    /// A device event, recorded when the piece is complete on this rank. Errors: usage if the piece does not exist or
    /// has not been sent; unsupported if the backend has no queues; the error of a run that failed.
    virtual Result<void*> event(std::size_t piece);
    /// True once the transport has all that this rank sends in the run's first step. The messages of a run that starts
    /// after that come later. A transport that does not order messages leaves this at true.
    [[nodiscard]] virtual bool has_sent() const { return true; }
    /// True once the target of this rank is complete and may be read. Peers may still have to take its messages: test
    /// then returns false. A transport that learns of both at once leaves this at false.
    [[nodiscard]] virtual bool has_arrived() const { return false; }
};

/// How a run begins.
struct StartOptions {
    bool offers_withheld = false;  ///< no piece is sent before Ticket::offer; ranks may differ in this
};

/// The decision of all ranks, before a run may write a target.
using Agreed = std::function<Result<void>()>;

/// Buffers bound to prepared schedules. May be started any number of times, one run at a time.
class Bound : NonCopyable {
public:
    virtual ~Bound() = default;
    virtual Result<std::unique_ptr<Ticket>> start() = 0;  ///< begins a run. Errors: backend
    /// Like start, but calls `agreed` once and fails with its error. No byte of a target is written before it succeeds.
    /// The run may be announced to the peers before. Errors before the call: as start.
    virtual Result<std::unique_ptr<Ticket>> start_if(const Agreed& agreed);
    /// The same, if sources are made piece by piece. Every executor's Bound supports it.
    Result<std::unique_ptr<Ticket>> start(const StartOptions& options) {
        return options.offers_withheld ? start_withheld() : start();
    }
    /// Like start, in the order of `queue`, which is a stream (cudaStream_t) for backends on devices. A stream that is
    /// being captured takes the run into its graph. Then the ticket is done at once, and the caller launches the graph
    /// while the Bound lives. Errors: as start; unsupported by backends without queues.
    virtual Result<std::unique_ptr<Ticket>> start_on(void* queue);
    /// The same with these options.
    Result<std::unique_ptr<Ticket>> start_on(void* queue, const StartOptions& options) {
        return options.offers_withheld ? start_withheld_on(queue) : start_on(queue);
    }
    [[nodiscard]] virtual std::vector<double> step_seconds() const = 0;  ///< last run, one per RankStep

    /// True if runs are ordered by a device's queues. Runs that start one after the other on one queue arrive in that
    /// order, so all pieces of a run may start at once. A backend with queues overrides the two functions below as
    /// well.
    [[nodiscard]] virtual bool queued() const { return false; }
    /// Makes the queue of the next start wait for all work that is on `queue` now. Errors: backend; unsupported without
    /// queues.
    virtual Result<void> wait_for_queue(void* queue);
    /// Recorded when all that the last start issued is done. It is the same event for each start; null without queues.
    [[nodiscard]] virtual void* event() const { return nullptr; }

protected:
    virtual Result<std::unique_ptr<Ticket>> start_withheld();                ///< by default unsupported
    virtual Result<std::unique_ptr<Ticket>> start_withheld_on(void* queue);  ///< by default unsupported
};

}  // namespace reshard
