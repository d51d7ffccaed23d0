#include "party.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace reshard::nccl::test {
namespace {

void stop(const char* call, const char* words) {
    std::fprintf(stderr, "%s: %s\n", call, words);
    std::abort();
}

}  // namespace

void must(cudaError_t code, const char* call) {
    if (code != cudaSuccess) stop(call, cudaGetErrorString(code));
}
void must(ncclResult_t code, const char* call) {
    if (code != ncclSuccess) stop(call, ncclGetErrorString(code));
}

// Communicators come and go between barriers: on a device that ranks share, their ends wait for each other's kernels.
void Party::on_every_rank(const std::function<void(ncclComm_t, Index)>& body) {
    int devices = 0;
    must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    ncclUniqueId id;
    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < ranks_; ++rank) {
        threads.emplace_back([&, rank] {
            must(cudaSetDevice(static_cast<int>(rank) % devices), "cudaSetDevice");
            ncclComm_t communicator = nullptr;
            must(ncclCommInitRank(&communicator, static_cast<int>(ranks_), id, static_cast<int>(rank)),
                 "ncclCommInitRank");
            body(communicator, rank);
            count_true(true);
            must(ncclCommDestroy(communicator), "ncclCommDestroy");
        });
    }
    for (std::thread& thread : threads) thread.join();
}

Index Party::count_true(bool answer) {
    std::unique_lock lock(mutex_);
    const Index generation = generation_;
    if (answer) ++true_answers_;
    if (++answers_ == ranks_) {
        result_ = true_answers_;
        answers_ = true_answers_ = 0;
        ++generation_;
        changed_.notify_all();
        return result_;
    }
    changed_.wait(lock, [&] { return generation_ != generation; });
    return result_;
}

}  // namespace reshard::nccl::test
