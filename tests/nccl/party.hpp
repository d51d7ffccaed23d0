// Ranks as threads of this process, each with a communicator and a device: its own where there are enough. Or this
// process is one rank of several, which meet through a file.
#pragma once

#include <functional>
#include <string>

#include "reshard/backends/nccl.hpp"
#include "support/ballot.hpp"

namespace reshard::nccl::test {

class Party {
public:
    explicit Party(Index ranks) : ranks_(ranks) {}
    /// This process is rank `own`; all name the same file, which nobody has made before.
    Party(Index ranks, Index own, std::string file) : ranks_(ranks), own_(own), file_(std::move(file)) {}
    ~Party();
    Party(const Party&) = delete;
    Party& operator=(const Party&) = delete;
    [[nodiscard]] Index ranks() const { return ranks_; }

    /// Runs the body once per rank, at the same time, with its device current.
    void on_every_rank(const std::function<void(ncclComm_t communicator, Index rank)>& body);

    /// Meets all ranks; the number of true answers. Called from within on_every_rank.
    Index count_true(bool answer);

private:
    void run_own(const std::function<void(ncclComm_t, Index)>& body);
    Index count_over_processes(bool answer);

    Index ranks_;
    Index own_ = -1;  ///< of this process; -1: all ranks are threads of it
    std::string file_;
    ncclComm_t communicator_ = nullptr;
    reshard::test::Ballot ballot_;
};

/// Aborts the program with the call's words: what cannot be made here has no test to fail.
void must(cudaError_t code, const char* call);
void must(ncclResult_t code, const char* call);

}  // namespace reshard::nccl::test
