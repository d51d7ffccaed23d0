// The state that everything of one backend shares: the device, the stream and communicators, and how ranks agree.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "backends/nccl/base/communicator.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::nccl {

/// A communicator of some ranks; null on ranks that are no members.
struct Group {
    std::shared_ptr<Communicator> communicator;
};

class Base : NonCopyable {
public:
    /// Collective over the caller's communicator. `own` says why this rank cannot go on, although it takes part.
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

    /// Collective: reduces element by element over all ranks.
    [[nodiscard]] Result<void> vote(std::span<std::uint64_t> values, ncclRedOp_t op);

    /// Collective: succeeds if all ranks have succeeded. Errors: as first_failure.
    [[nodiscard]] Result<void> all_succeeded(const Result<void>& own);

    /// Collective, after some rank has failed. Returns this rank's failure if it has one, otherwise the code and the
    /// message of the first rank that failed.
    [[nodiscard]] Result<void> first_failure(const Result<void>& own);

    /// Collective: the numbers that all ranks brought, in rank order.
    [[nodiscard]] Result<std::vector<std::uint64_t>> gather(std::uint64_t own);

    /// Collective: the communicator of `members` in their order. `partition` identifies the groups of the ranks, and is
    /// the same on all ranks. Null if there are too many communicators already. Plans hold theirs on all ranks.
    [[nodiscard]] Result<std::shared_ptr<Group>> group(std::uint64_t partition, const std::vector<Index>& members);

    /// Runs something that makes NCCL allocate memory, and counts how much.
    template <class Body>
    [[nodiscard]] auto counting(const Body& body) {
        const Index before = free_bytes();
        auto made = body();
        communicator_bytes_ += std::max<Index>(0, before - free_bytes());
        return made;
    }

    /// Polls until the stream is idle. Aborts the communicators after a fault or at the timeout.
    [[nodiscard]] Result<void> await(cudaStream_t stream);

    [[nodiscard]] Result<void> fault() const;   ///< the asynchronous error of any communicator
    void abort(const Error& why);               ///< all communicators; nothing starts after it
    [[nodiscard]] Result<void> usable() const;  ///< fails with the reason if it was aborted

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
