// Runs: what is bound may be started, and a run in flight is looked at, waited for, and given what it may send.
#pragma once

#include <memory>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// What has one owner and stays where it was made.
struct NonCopyable {
    NonCopyable() = default;
    ~NonCopyable() = default;
    NonCopyable(const NonCopyable&) = delete;
    NonCopyable& operator=(const NonCopyable&) = delete;
};

/// A run in flight. Dropping it waits. An error names the step and, where one is known, the peer; after one nothing of
/// the target's contents is promised.
class Ticket : NonCopyable {
public:
    virtual ~Ticket() = default;
    virtual Result<bool> test() = 0;  ///< true once all is delivered; makes progress; never blocks
    virtual Result<void> wait();      ///< returns when all is delivered on this rank; by wait_for
    /// As wait, but returns false when that takes longer than about so long. One test, where nobody has said how.
    virtual Result<bool> wait_for(Index microseconds);

    /// How many pieces of the target are complete on this rank and may be read: a prefix of the order in which they
    /// travel (piece_at); the others may be half written. Pieces are those of an overlapped Split, else the buckets of
    /// a list, of which all but a list of several have one. Makes progress and takes all that is there; never blocks.
    /// The transport rests between two calls: about every half millisecond hides what can be hidden (docs/overlap.md).
    virtual Result<std::size_t> arrived();
    /// This rank's part of the source of a piece is made, and may be read from now on; of a run that was started with
    /// offers withheld. In any order; a piece sets out when it and all that travel before it have been offered, on
    /// every rank. Never blocks. Errors: usage where nothing is withheld, for a piece that there is not, and for one
    /// that was offered before; the run goes on. Until all are offered, test and wait_for return false, and wait
    /// returns usage once nothing else is left to wait for. A run that is dropped before is a failure, of which peers
    /// are told (by NCCL not before their timeout); they wait for an offer as long as for a rank that does not come.
    virtual Result<void> offer(std::size_t piece);
};

/// How a run begins.
struct StartOptions {
    bool offers_withheld = false;  ///< no piece sets out before Ticket::offer; all ranks may differ in this
};

/// Buffers bound to prepared schedules; may be started any number of times, one run at a time.
class Bound : NonCopyable {
public:
    virtual ~Bound() = default;
    virtual Result<std::unique_ptr<Ticket>> start() = 0;  ///< begins a run. Errors: backend
    /// The same with sources that are made piece by piece. What an executor has bound takes both.
    Result<std::unique_ptr<Ticket>> start(const StartOptions& options) {
        return options.offers_withheld ? start_withheld() : start();
    }
    /// As start, in the order of `queue`: of backends on devices a stream (cudaStream_t). A stream that is being
    /// captured takes the run into its graph; the ticket is then done at once, and the graph is the caller's to launch,
    /// while what was bound lives. Errors: as start; unsupported by backends without queues.
    virtual Result<std::unique_ptr<Ticket>> start_on(void* queue);
    [[nodiscard]] virtual std::vector<double> step_seconds() const = 0;  ///< last run, one per RankStep

protected:
    virtual Result<std::unique_ptr<Ticket>> start_withheld();  ///< unsupported, where nobody has said how
};

}  // namespace reshard
