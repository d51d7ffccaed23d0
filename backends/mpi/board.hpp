// Where the ranks of a node tell each other how far they are: a line for each rank in shared memory, and one bell for
// all. Waiting is a few looks, then giving up the processor, then sleep; a peer that died ends it, and so does
// patience.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "backends/mpi/arena.hpp"
#include "backends/mpi/handles.hpp"

namespace reshard::mpi {

/// What a rank says of itself. Counters only grow. A line is written by its rank alone.
struct alignas(64) BoardLine {
    std::atomic<std::uint64_t> entered;  ///< runs begun: its buffers may be read and written
    std::atomic<std::uint64_t> filled;   ///< rounds in which it has filled its peers' windows, over all runs
    std::atomic<std::uint64_t> drained;  ///< rounds in which it has emptied its own
    std::atomic<std::uint64_t> done;     ///< runs in which it has written all that it writes
    std::atomic<std::uint32_t> left;     ///< it will not look at the board again
    std::int32_t process;
};

class Board {
public:
    /// Collective. `addresses` per rank are what each run publishes. Every rank must map it, or none does: an error.
    [[nodiscard]] static Result<std::unique_ptr<Board>> make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena,
                                                             std::size_t addresses, std::chrono::milliseconds patience);

    [[nodiscard]] static Index bytes(Index ranks, std::size_t addresses);

    [[nodiscard]] BoardLine& line(std::size_t rank) const;
    [[nodiscard]] Address& address(std::size_t rank, std::size_t index) const;
    [[nodiscard]] std::size_t rank() const { return rank_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Index own_bytes() const { return own_ ? static_cast<Index>(own_->bytes().size()) : 0; }

    /// After a counter of this rank has grown.
    void ring();

    /// Tells all that this rank has failed and why; the first to say so is heard.
    void fail_all(const Error& error);

    /// What a rank is waited for: its counter must have reached `least`.
    struct Wanted {
        std::size_t rank;
        std::atomic<std::uint64_t> BoardLine::*counter;
        std::uint64_t least;
    };

    using Wanteds = std::vector<Wanted>;

    [[nodiscard]] bool all_there(const Wanteds& wanted) const;

    /// True when all of `either`, or all of `other`, are there (none of an empty list never are). Without `block` false
    /// when not. Errors: backend when a peer failed, died, or did not come for as long as patience lasts.
    [[nodiscard]] Result<bool> wait(const Wanteds& either, const Wanteds& other, bool block);

    ~Board();
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

private:
    struct Head;
    Board() = default;
    [[nodiscard]] Head& head() const;
    [[nodiscard]] const Wanted& missing_of(const Wanteds& either, const Wanteds& other) const;
    [[nodiscard]] Result<void> look_after(const Wanted& missing, std::chrono::steady_clock::time_point since) const;

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Memory> own_;  // of rank 0
    std::byte* start_ = nullptr;
    std::size_t rank_ = 0;
    std::size_t size_ = 0;
    std::size_t addresses_ = 0;
    int looks_ = 0;  // before the processor is given up
    std::chrono::milliseconds patience_{};
};

}  // namespace reshard::mpi
