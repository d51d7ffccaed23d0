// Communicators of the backend's own: split off, polled instead of waited for, aborted when there is no other end.
#pragma once

#include <chrono>

#include "backends/nccl/base/handles.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::nccl {

using Clock = std::chrono::steady_clock;

/// Yields at first and sleeps later, so that what ends soon is seen soon and what does not takes no processor.
class Backoff {
public:
    void pause();

private:
    int pauses_ = 0;
};

/// Polls until nothing is in progress: every call on a communicator that does not block may leave it so. Errors:
/// backend when it failed behind the host's back, or did not come to an end within `timeout`.
[[nodiscard]] Result<void> settle(ncclComm_t communicator, std::chrono::milliseconds timeout);

/// What went wrong with the communicator behind the host's back, if anything.
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

/// Issues them all, and returns the first error.
[[nodiscard]] Result<void> run_exchange(const Exchange& exchange, ncclComm_t communicator, cudaStream_t stream);

class Communicator : NonCopyable {
public:
    /// Collective over `parent`. Null where the color is NCCL_SPLIT_NOCOLOR. Never blocks where its parent does not.
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
