// The communicators of the backend. They are split off, polled without blocking, and aborted if they do not end.
#pragma once

#include <chrono>

#include "backends/nccl/base/handles.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::nccl {

using Clock = std::chrono::steady_clock;

/// Yields at first and sleeps later. A short wait ends quickly, and a long wait uses no processor.
class Backoff {
public:
    void pause();

private:
    int pauses_ = 0;
};

/// Polls until nothing is in progress: every call on a nonblocking communicator may leave it so. Errors: backend if the
/// communicator failed asynchronously, or did not finish within `timeout`.
[[nodiscard]] Result<void> settle(ncclComm_t communicator, std::chrono::milliseconds timeout);

/// The asynchronous error of the communicator, if any.
[[nodiscard]] Result<void> fault_of(ncclComm_t communicator);

/// Messages that are one group of calls.
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
    /// Collective over `parent`. Null if the color is NCCL_SPLIT_NOCOLOR. Blocks only if its parent blocks.
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
