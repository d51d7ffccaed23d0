// The shared state of one backend: the device, the stream, communicators, and agreement between ranks.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "backends/nccl/base/communicator.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::nccl {

/// A communicator of some ranks. The other ranks hold no communicator.
struct Group {
    std::shared_ptr<Communicator> communicator;
};

class Base : NonCopyable {
public:
    /// Collective over the caller's communicator. `own`: the reason why this rank fails, although it takes part.
    [[nodiscard]] static Result<std::unique_ptr<Base>> make(ncclComm_t callers, const Options& options,
                                                            const Result<void>& own);
    ~Base();

    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] Index rank() const { return rank_; }
    [[nodiscard]] Index size() const { return size_; }
    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] cudaStream_t stream() const { return options_.stream; }
    [[nodiscard]] const std::shared_ptr<Communicator>& world() const { return world_; }
    [[nodiscard]] Index communicator_bytes() const { return communicator_bytes_; }

    /// Collective: element by element over all ranks.
    [[nodiscard]] Result<void> vote(std::span<std::uint64_t> values, ncclRedOp_t op);

    /// Collective: succeeds if all ranks succeed. Errors: as first_failure.
    [[nodiscard]] Result<void> all_succeeded(const Result<void>& own);

    /// Collective, after some rank has failed. Returns the failure of this rank if it has one. Otherwise returns the
    /// code and the text of the first rank that failed.
    [[nodiscard]] Result<void> first_failure(const Result<void>& own);

    /// Collective: the contribution of each rank, in rank order.
    [[nodiscard]] Result<std::vector<std::uint64_t>> gather(std::uint64_t own);

    /// Collective: the communicator of `members` in their order. `partition` is the same on all ranks and identifies
    /// the division of ranks into groups. Returns null if no further communicator fits. Plans hold theirs on every
    /// rank, members or not.
    [[nodiscard]] Result<std::shared_ptr<Group>> group(std::uint64_t partition, const std::vector<Index>& members);

    /// Runs a function that makes NCCL allocate memory, and counts that memory.
    template <class Body>
    [[nodiscard]] auto counting(const Body& body) {
        const Index before = free_bytes();
        auto made = body();
        communicator_bytes_ += std::max<Index>(0, before - free_bytes());
        return made;
    }

    /// Polls until the stream is idle. Aborts the communicators after a fault or a timeout.
    [[nodiscard]] Result<void> await(cudaStream_t stream);

    [[nodiscard]] Result<void> fault() const;   ///< the asynchronous error of any communicator
    void abort(const Error& why);               ///< aborts all communicators; nothing starts after it
    [[nodiscard]] Result<void> usable() const;  ///< fails with the reason of the abort

    /// Device memory for a few bytes to and from every peer, to connect them.
    [[nodiscard]] std::byte* scratch() const { return static_cast<std::byte*>(votes_.get()); }

private:
    Base() = default;
    [[nodiscard]] Result<void> set_up(ncclComm_t callers, const Result<void>& own);
    [[nodiscard]] Result<void> take_stream();
    [[nodiscard]] static Index free_bytes();

    Options options_;
    int device_ = 0;
    Index rank_ = 0;
    Index size_ = 1;
    std::optional<Stream> own_stream_;
    StreamMemory votes_;
    std::shared_ptr<Communicator> world_;
    std::map<std::uint64_t, std::shared_ptr<Group>> groups_;  // by partition
    std::optional<Error> aborted_;
    Index communicator_bytes_ = 0;
};

}  // namespace reshard::nccl
