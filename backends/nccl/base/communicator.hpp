// The backend's own communicators: split off, polled instead of waited for, and aborted if nothing else ends them.
#pragma once

#include <chrono>

#include "backends/nccl/base/handles.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::nccl {

using Clock = std::chrono::steady_clock;

/// Yields at first and sleeps later: a short wait ends soon, and a long one takes no processor.
class Backoff {
public:
    void pause();

private:
    int pauses_ = 0;
};

/// Polls until nothing is in progress. Every call on a nonblocking communicator may leave it in progress. Errors:
/// backend if it failed asynchronously, or was not done within `timeout`.
[[nodiscard]] Result<void> settle(ncclComm_t communicator, std::chrono::milliseconds timeout);

/// The asynchronous error of the communicator, if it has one.
[[nodiscard]] Result<void> fault_of(ncclComm_t communicator);

/// Messages that are issued as one group of calls.
struct Exchange {
    struct End {
        int peer;
        std::byte* start;
        std::size_t bytes;
    };
    std::vector<End> sends;
    std::vector<End> receives;
};

/// Issues all messages, and returns the first error.
[[nodiscard]] Result<void> run_exchange(const Exchange& exchange, ncclComm_t communicator, cudaStream_t stream);

class Communicator : NonCopyable {
public:
    /// Collective over `parent`. Null if the color is NCCL_SPLIT_NOCOLOR. It never blocks if its parent does not.
    [[nodiscard]] static Result<std::shared_ptr<Communicator>> split(ncclComm_t parent, int color, int key,
                                                                     const Options& options);
    ~Communicator();

    [[nodiscard]] ncclComm_t get() const { return communicator_; }
    [[nodiscard]] bool aborted() const { return communicator_ == nullptr; }
    void abort();

private:
    explicit Communicator(ncclComm_t communicator) : communicator_(communicator) {}
    ncclComm_t communicator_;
};

}  // namespace reshard::nccl
