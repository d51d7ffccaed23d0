// Ranks as threads of this process, each with a communicator and, if there are enough, its own device. Or this process
// is one rank of several, which meet through a file.
#pragma once

#include <functional>
#include <string>

#include "reshard/backends/nccl.hpp"
#include "support/ballot.hpp"

namespace reshard::nccl::test {

class Party {
public:
    /// Ranks as threads. If RESHARD_RANK and RESHARD_MEET are set, this process is that rank of several, which name the
    /// same file. It must not exist yet.
    explicit Party(Index ranks);
    ~Party() = default;
    Party(const Party&) = delete;
    Party& operator=(const Party&) = delete;
    [[nodiscard]] Index ranks() const { return ranks_; }
    /// Ends the communicator that all parties of a process share. A program calls it after its tests: CUDA is gone when
    /// static objects end.
    static void leave();

    /// Runs the body on all ranks at the same time, each with its device current.
    void on_every_rank(const std::function<void(ncclComm_t communicator, Index rank)>& body);

    /// Waits for all ranks and returns the number of true answers. Call it from within on_every_rank.
    Index count_true(bool answer);

private:
    void run_own(const std::function<void(ncclComm_t, Index)>& body);
    Index count_over_processes(bool answer);

    Index ranks_;
    Index own_ = -1;  ///< rank of this process; -1: all ranks are threads of it
    std::string file_;
    reshard::test::Ballot ballot_;
};

/// Aborts the program with the name of the call if it failed, because there is no test to fail here.
void must(cudaError_t code, const char* call);
void must(ncclResult_t code, const char* call);

}  // namespace reshard::nccl::test
