// The meeting point of ranks that are threads of this process.
#pragma once

#include <algorithm>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

struct Barrier {
    explicit Barrier(Index ranks) : barrier(ranks), brought(static_cast<std::size_t>(ranks)) {}

    /// Returns every rank's value, in rank order.
    std::vector<std::string> share(Index rank, std::string mine) {
        brought[static_cast<std::size_t>(rank)] = std::move(mine);
        barrier.arrive_and_wait();
        std::vector<std::string> all = brought;
        barrier.arrive_and_wait();  // no rank brings its next value before all have this one
        return all;
    }

    std::barrier<> barrier;
    std::vector<std::string> brought;
};

/// A rank that is a thread of this process. It has no baselines of MPI.
class ThreadRank final : public Rank {
public:
    ThreadRank(Backend& backend, Barrier& barrier) : backend_(backend), barrier_(barrier) {}

    Backend& backend() override { return backend_; }
    void barrier() override { barrier_.barrier.arrive_and_wait(); }
    bool one_process() const override { return true; }
    std::vector<std::string> share(std::string mine) override { return barrier_.share(index(), std::move(mine)); }
    Result<std::unique_ptr<Backend>> by_hand(ByHand) override {
        return fail(Code::unsupported, "baselines of MPI need the mpi backend");
    }
    Result<std::unique_ptr<Backend>> messages() override {
        return fail(Code::unsupported, "MPI messages need the mpi backend");
    }

private:
    Backend& backend_;
    Barrier& barrier_;
};

/// Runs body(rank) on a thread for each of `ranks`. Returns the largest exit code.
template <class Body>
int on_threads(Index ranks, const Body& body) {
    std::vector<int> codes(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] { codes[static_cast<std::size_t>(rank)] = body(rank); });
    for (std::thread& thread : threads) thread.join();
    return *std::max_element(codes.begin(), codes.end());
}

}  // namespace reshard::cli
