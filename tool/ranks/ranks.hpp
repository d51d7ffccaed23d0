// The ranks of a run: threads of this process, or processes under MPI. The code of a rank is the same for both.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reshard/backends/backend.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {

/// The ways of MPI programs to move boxes without this library (backends/baseline): one call for all, Alpa's unit
/// tasks, or one of MPI's reductions.
enum class ByHand { alltoallw, messages_of_boxes, broadcasts, reductions };

/// One rank, as its own code sees it. All functions that do something are collective.
class Rank {
public:
    virtual ~Rank() = default;
    [[nodiscard]] virtual Backend& backend() = 0;
    [[nodiscard]] virtual std::vector<std::string> share(std::string mine) = 0;  ///< every rank's `mine`, in rank order
    virtual void barrier() = 0;
    [[nodiscard]] virtual bool one_process() const = 0;  ///< true when all ranks share this one

    /// Make backends for baselines. by_hand moves without a plan; messages runs a plan step by step in messages. Not
    /// for threads.
    [[nodiscard]] virtual Result<std::unique_ptr<Backend>> by_hand(ByHand way) = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<Backend>> messages() = 0;

    [[nodiscard]] Index index() { return backend().rank(); }
    [[nodiscard]] Index size() { return backend().size(); }
};

/// The ranks that this process drives.
class Ranks {
public:
    virtual ~Ranks() = default;
    [[nodiscard]] virtual std::string name() const = 0;  ///< of the backend: local, mpi
    [[nodiscard]] virtual bool one_process() const = 0;  ///< true when all ranks share this process
    [[nodiscard]] virtual Capabilities capabilities() = 0;
    /// Runs the body once on every rank driven here and returns the largest of its exit codes. Rank 0 writes an error,
    /// which all ranks have, also as JSON if `as_json`.
    int each(bool as_json, const std::function<Result<int>(Rank&)>& body);

protected:
    virtual int drive(const std::function<int(Rank&)>& body) = 0;
};

/// Makes the ranks for `devices` devices. `backend` is local, mpi or nccl. Empty means mpi if an MPI launcher started
/// this process, else local. `timeout` and `ranks_per_node` are for mpi: a node counts as so many ranks, and 0 keeps
/// the real nodes. Errors: usage, unsupported, mismatch (too few ranks were started), backend.
[[nodiscard]] Result<std::unique_ptr<Ranks>> make_ranks(const std::string& backend, Index devices,
                                                        std::chrono::seconds timeout, Index ranks_per_node = 0);

[[nodiscard]] Result<std::unique_ptr<Ranks>> local_ranks(Index devices);
[[nodiscard]] Result<std::unique_ptr<Ranks>> mpi_ranks(Index devices, std::chrono::seconds timeout,
                                                       Index ranks_per_node);
[[nodiscard]] Result<std::unique_ptr<Ranks>> nccl_ranks(Index devices);
[[nodiscard]] Index nccl_devices();  ///< GPUs that this process sees; 0 without any, or without the backend

/// Returns the number of ranks for a run that gives no mesh.
[[nodiscard]] Index default_rank_count(const std::string& backend);

/// Collective: succeeds if all ranks have. Otherwise all ranks get the error of the lowest failed rank.
[[nodiscard]] Result<void> agree(Rank& rank, const Result<void>& mine);
template <class T>
[[nodiscard]] Result<T> agree(Rank& rank, Result<T> mine) {
    RESHARD_CHECK(agree(rank, mine ? Result<void>() : tl::unexpected(mine.error())));
    return mine;
}

/// Collective: combine element by element over all ranks.
[[nodiscard]] std::vector<Index> sum(Rank& rank, const std::vector<Index>& mine);
[[nodiscard]] std::vector<Index> largest(Rank& rank, const std::vector<Index>& mine);
[[nodiscard]] std::vector<double> largest(Rank& rank, const std::vector<double>& mine);

}  // namespace reshard::cli
