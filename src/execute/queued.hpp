// Runs on the queues of a device (streams, of NCCL): what orders them with the caller's work there, without the host.
// Queues and events are those of the backend, which alone knows their types.
#pragma once

#include "reshard/backends/run.hpp"

namespace reshard {

/// What a Bound of such a backend is besides. Runs that are started one after the other on one queue arrive in that
/// order, so that all pieces may set out at once.
class QueuedBound {
public:
    virtual ~QueuedBound() = default;
    /// The next start lets its queue wait for what is on `queue` now. Errors: backend.
    virtual Result<void> wait_for_queue(void* queue) = 0;
    /// Recorded when all that the last start issued is done; the same one for each start.
    [[nodiscard]] virtual void* event() const = 0;
};

/// What a Bound of an executor is besides.
class WithheldOnQueue {
public:
    virtual ~WithheldOnQueue() = default;
    /// As Bound::start with offers withheld, in the order of `queue`. Errors: unsupported by backends without queues.
    virtual Result<std::unique_ptr<Ticket>> start_withheld_on(void* queue) = 0;
};

/// What its tickets are besides.
class QueuedTicket {
public:
    virtual ~QueuedTicket() = default;
    /// Recorded when the piece is complete on this rank. Errors: usage for a piece that there is not or that has not
    /// set out; unsupported by backends without queues; what the run failed of.
    virtual Result<void*> event(std::size_t piece) = 0;
    /// As Ticket::offer, of a source that is made once all is done that is on `queue` now. Errors also: unsupported,
    /// backend.
    virtual Result<void> offer_on(std::size_t piece, void* queue) = 0;
};

}  // namespace reshard
