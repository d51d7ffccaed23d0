#include "party.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
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

namespace {

ncclComm_t process_communicator = nullptr;  // of a process that is one rank; backends split theirs off it

// Rank 0 leaves the id in a file, which appears whole.
ncclUniqueId id_through(const std::string& file, bool first) {
    ncclUniqueId id;
    if (first) {
        must(ncclGetUniqueId(&id), "ncclGetUniqueId");
        std::ofstream(file + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
        std::filesystem::rename(file + ".part", file);
        return id;
    }
    while (!std::filesystem::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
    return id;
}

}  // namespace

Party::Party(Index ranks) : ranks_(ranks) {
    const char* const rank = std::getenv("RESHARD_RANK");
    const char* const file = std::getenv("RESHARD_MEET");
    if (rank == nullptr || file == nullptr) return;
    own_ = std::atoi(rank);
    file_ = file;
}

void Party::leave() {
    if (process_communicator != nullptr) ncclCommDestroy(std::exchange(process_communicator, nullptr));
}

void Party::run_own(const std::function<void(ncclComm_t, Index)>& body) {
    int devices = 0;
    must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    must(cudaSetDevice(static_cast<int>(own_) % devices), "cudaSetDevice");
    if (process_communicator == nullptr) {
        must(ncclCommInitRank(&process_communicator, static_cast<int>(ranks_), id_through(file_, own_ == 0),
                              static_cast<int>(own_)),
             "ncclCommInitRank");
    }
    body(process_communicator, own_);
}

Index Party::count_over_processes(bool answer) {
    int number = answer ? 1 : 0;
    int* there = nullptr;
    must(cudaMalloc(&there, sizeof number), "cudaMalloc");
    must(cudaMemcpy(there, &number, sizeof number, cudaMemcpyHostToDevice), "cudaMemcpy");
    must(ncclAllReduce(there, there, 1, ncclInt32, ncclSum, process_communicator, nullptr), "ncclAllReduce");
    must(cudaMemcpy(&number, there, sizeof number, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(there), "cudaFree");
    return number;
}

// Communicators are made and ended between barriers. If ranks share a device, each end waits for the others' kernels.
void Party::on_every_rank(const std::function<void(ncclComm_t, Index)>& body) {
    if (own_ >= 0) return run_own(body);
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
    if (own_ >= 0) return count_over_processes(answer);
    return ballot_.count_true(ranks_, answer);
}

}  // namespace reshard::nccl::test
