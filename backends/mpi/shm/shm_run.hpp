// The common part of runs in the memory of a node. Each rank publishes the addresses of its buffers, says how far it
// is, and waits until its peers are as far.
#pragma once

#include "backends/mpi/shm/shm_addresses.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// A state machine of phases. After the first failure it tells all ranks and does nothing more.
class ShmRun {
public:
    /// False when it waits for a peer; true when it is over.
    Result<bool> advance(Slice most);

protected:
    using Ranks = std::vector<std::size_t>;

    /// Run number `run` has begun: what ranks in `peers` sleep for.
    ShmRun(Signals& signals, const ShmAddresses& buffers, std::uint64_t run, const Ranks& peers);
    ~ShmRun() = default;

    virtual Result<bool> next(Slice most) = 0;  ///< one phase; false when it waits for a peer
    void end() { over_ = true; }

    /// The addresses that a rank published, two per array.
    [[nodiscard]] Address& published(std::size_t rank, std::size_t index) const;
    /// The memory there. An error names the step of the plan that moves it.
    [[nodiscard]] Result<std::byte*> reach(Arena& arena, std::size_t rank, std::size_t index, std::size_t step);
    /// Copies bytes that a peer wrote into the shadows of an array to their place, after it has said that it is done.
    void bring_back(std::size_t array, std::size_t peer) const;
    /// This rank is so far.
    void say(Counter SignalLine::*counter, std::uint64_t value, const Ranks& peers);
    /// They are.
    Result<bool> wait(Counter SignalLine::*counter, std::uint64_t least, const Ranks& peers, Slice most);

    Signals& signals_;
    const ShmAddresses& buffers_;
    std::uint64_t run_;
    Waiting waiting_;

private:
    std::vector<RegisteredPages::Use> uses_;
    Views views_;  // of the peers' buffers
    bool over_ = false;
};

}  // namespace reshard::mpi
