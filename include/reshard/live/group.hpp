// The processes of one job, and a way for them to agree. A job that has one already (MPI, torch) wraps it in a Group.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::live {

/// The processes of one job. All processes make the same calls in the same order.
class Group {
public:
    virtual ~Group() = default;
    [[nodiscard]] virtual Index rank() const = 0;  ///< of this process, from 0
    [[nodiscard]] virtual Index size() const = 0;  ///< processes of the job

    /// Returns the bytes of all ranks, by rank. It may fail on some ranks and succeed on others. Wherever it succeeds, the
    /// bytes are the same. Errors: backend (a rank is lost, or is not there within `limit`; it is named).
    [[nodiscard]] virtual Result<std::vector<std::string>> gather(std::string mine,
                                                                  std::chrono::milliseconds limit) = 0;

    /// Fails if a rank is known to be lost. Never waits. Errors: backend.
    [[nodiscard]] virtual Result<void> check() { return {}; }
};

/// The group of a job with one process.
[[nodiscard]] std::unique_ptr<Group> alone();

/// Joins a group of processes that were started by anything. Rank 0 listens at `endpoint`, and the others connect to
/// it. An endpoint is a path of a Unix socket, `/run/trainer`, or `host:port`. All ranks must come within `limit`.
/// Errors: usage (a rank outside the group; an endpoint without a path or a port); backend (a rank does not come).
[[nodiscard]] Result<std::unique_ptr<Group>> join_group(const std::string& endpoint, Index rank, Index size,
                                                        std::chrono::milliseconds limit = std::chrono::minutes(1));

/// Joins a group of processes that can already broadcast a text, such as the ranks of an MPI communicator. Rank 0
/// listens at a free port of its machine. Each rank calls `broadcast` once, which returns the text of rank 0.
/// Errors: usage (a rank outside the group); backend (a rank does not come; rank 0 cannot listen); as `broadcast`.
[[nodiscard]] Result<std::unique_ptr<Group>> join_group(
    const std::function<Result<std::string>(std::string)>& broadcast, Index rank, Index size,
    std::chrono::milliseconds limit = std::chrono::minutes(1));

/// Takes part in the next collective call of a publisher or subscriber, instead of making it: open, commit, connect or
/// reconnect. All ranks then fail with `reason` at once, and do not wait for this one. Errors: as Group::gather.
[[nodiscard]] Result<void> report_failure(Group& group, const std::string& reason, std::chrono::milliseconds limit);

}  // namespace reshard::live
