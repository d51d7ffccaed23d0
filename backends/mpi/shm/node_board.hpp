// The board of the ranks of one node: their letters in shared memory, and signals to wait by.
#pragma once

#include <memory>

#include "backends/mpi/base/board.hpp"
#include "backends/mpi/shm/segment.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// Two places for each rank: a rank may come to the next meeting while its peers still read the letters of the last
/// one. It cannot come to the meeting after that.
class NodeBoard final : public Board {
public:
    /// Collective over the ranks of a node. Its memory does not count as memory of moves. All ranks return an error if
    /// one does: backend if memory is short, or cannot be shared. `crowded`: they share cores.
    [[nodiscard]] static Result<std::unique_ptr<Board>> make(MPI_Comm communicator, bool crowded,
                                                             std::chrono::milliseconds timeout);
    /// The board of one rank over bytes() zero bytes that all ranks see, aligned to line_pair.
    NodeBoard(std::byte* memory, const Signals::Among& among, std::chrono::milliseconds timeout);
    [[nodiscard]] static Index bytes(std::size_t ranks);

    bool come(const Letter& own) override;
    bool has_come(int rank, std::uint64_t number) const override;
    bool all_come(std::uint64_t number, std::chrono::microseconds most) override;
    bool agrees(const Letter& own) const override;
    const Letter& letter_of(int rank, std::uint64_t number) const override;
    bool is_open() const override;
    bool close(std::uint64_t number) override;
    void open_after(std::uint64_t number) override;

private:
    /// Ranks read it in each meeting and seldom write it.
    struct alignas(line_pair) Closed {
        std::atomic<std::uint32_t> flag;      ///< 1 while the board is closed
        std::atomic<std::uint32_t> sleepers;  ///< ranks that may sleep until others come
    };
    /// The start of the letter shares a cache line with the counter, so a peer reads both at once.
    struct alignas(line_pair) Place {
        Counter arrived;  ///< the number of the letter's meeting, once its rank has come; with a mark if it cannot come
        Letter letter;
    };
    [[nodiscard]] Closed& closed() const;
    bool shut();  // false
    [[nodiscard]] Place& place(std::size_t rank, std::uint64_t number) const;
    [[nodiscard]] bool all_arrived(std::uint64_t number) const;

    std::optional<Segment> segment_;
    std::byte* letters_;  // the flag, then the places
    std::unique_ptr<Signals> signals_;
    Signals::Wanteds others_;
};

}  // namespace reshard::mpi
