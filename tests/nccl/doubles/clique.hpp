// The state of a communicator in the double of libnccl: shared by its ranks, and of each rank.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "nccl.hpp"

namespace nccl_double {

enum class Call { all_gather, reduce_scatter, all_reduce, all_to_all };

/// One rank's part in a collective.
struct Part {
    Call call = Call::all_gather;
    std::size_t count = 0;
    ncclDataType_t type = ncclInt8;
    ncclRedOp_t op = ncclSum;
    const void* send = nullptr;
    void* receive = nullptr;
    [[nodiscard]] bool agrees(const Part& other) const {
        return call == other.call && count == other.count && type == other.type && op == other.op;
    }
};

/// A send that runs and waits for its receive. Nothing is buffered.
struct Offer {
    const void* from;
    std::size_t bytes;
    bool taken = false;
};

struct Split {
    std::map<int, std::pair<int, int>> choices;          // rank -> color, key
    std::map<int, std::shared_ptr<struct Clique>> made;  // by color
};

struct Clique {
    explicit Clique(int count) : ranks(count) {}
    const int ranks;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<long, std::map<int, Part>> parts;
    std::map<long, int> read;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Offer>>> offers;  // (sender, receiver), in order
    std::map<long, Split> splits;
    std::map<long, std::map<int, std::size_t>> windows;
    int joined = 0;
    std::string wrong;  ///< a fatal mistake: real NCCL would hang or move wrong data
};

}  // namespace nccl_double

/// One rank's communicator. It is never freed while its work may still run.
struct ncclComm {
    std::shared_ptr<nccl_double::Clique> clique;
    int rank = 0;
    int device = 0;
    bool blocking = true;
    std::size_t reserved = 0;
    std::set<int> peers;  ///< connected peers, which cost memory
    std::atomic<bool> aborted{false};
    std::atomic<int> failure{ncclSuccess};  ///< asynchronous error of this rank
    std::atomic<long> issued{0};
    std::atomic<long> begun{0};  ///< operations run one after another, in the order of issue
    std::atomic<long> open{0};   ///< operations issued but not yet over
    long collectives = 0;
    long splits = 0;
    long windows = 0;
    std::function<bool()> in_progress;  ///< for a non-blocking communicator: tries to make progress; true when done
};

namespace nccl_double {

/// Point-to-point operations of one group on one communicator make progress together.
struct Message {
    bool sends;
    int peer;
    const void* from;
    void* to;
    std::size_t bytes;
};

struct Operation {
    std::shared_ptr<ncclComm> communicator;
    cudaStream_t stream;
    bool collective;
    Part part;
    std::vector<Message> messages;
    long number = -1;  ///< in the order of issue; -1: captured, and numbered when it runs
};

[[nodiscard]] std::size_t bytes_of(ncclDataType_t type);

/// Runs on the stream's thread.
void run(Operation& operation);

/// target = op over the parts' elements [first, first + count), in an order chosen by `turn`.
void reduce(const std::map<int, Part>& parts, std::size_t first, std::size_t count, int turn, void* target);

/// Waits until `done`, an abort of this rank, or the double's timeout, which it reports. True when done.
template <class Done>
bool wait(std::unique_lock<std::mutex>& lock, ncclComm& own, const char* what, const Done& done);

[[nodiscard]] int timeout_milliseconds();
[[nodiscard]] bool fails_now(int device);
void spoil(Clique& clique, const std::string& what);

template <class Done>
bool wait(std::unique_lock<std::mutex>& lock, ncclComm& own, const char* what, const Done& done) {
    Clique& clique = *own.clique;
    const auto ends = [&] { return own.aborted || !clique.wrong.empty() || done(); };
    const std::chrono::milliseconds timeout(timeout_milliseconds());
    if (!clique.changed.wait_for(lock, timeout, ends)) {
        spoil(clique, std::string("real NCCL would hang: rank ") + std::to_string(own.rank) + ": " + what);
    }
    return !own.aborted && clique.wrong.empty();
}

}  // namespace nccl_double
