// Where the ranks of a node tell each other how far they are: a line for each rank in shared memory, with a bell that
// others ring when what it sleeps for has come. Waiting is a few looks, then giving up the processor, then sleep; a
// peer that died, failed or dropped its executor ends it, and so does the timeout.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/common/waits.hpp"
#include "backends/mpi/base/handles.hpp"
#include "backends/mpi/shm/arena.hpp"

namespace reshard::mpi {

/// Only grows, and one rank alone writes it.
using Counter = std::atomic<std::uint64_t>;

/// What a rank says of itself; only the bell is others' to write, and the sleep theirs to end.
struct alignas(64) SignalLine {
    Counter entered;                     ///< runs begun: its buffers may be read and written
    Counter done;                        ///< runs in which it has read and written all that it does
    Counter turn;                        ///< of a run that goes in rounds: how far it is
    std::atomic<std::uint32_t> bell;     ///< futex
    std::atomic<std::uint32_t> asleep;   ///< whose call ends its sleep: a rank + 1, anyone's, or 0 when it is awake
    std::atomic<std::uint32_t> left;     ///< it will not look at the board again
    std::atomic<std::uint32_t> excused;  ///< it could not bind or start since its last run
    std::int32_t process;
    std::int32_t rank;              ///< of the backend
    std::array<double, 2> seconds;  ///< what the run before took it, by the parity of the run; 0: nothing to compare
};

/// How long a call may wait before it says "not yet"; 0: it only looks.
using Slice = std::chrono::microseconds;
inline constexpr Slice only_look{0};
inline constexpr Slice long_slice{20'000};

class Signals {
public:
    using Clock = std::chrono::steady_clock;

    /// Collective. `addresses` per rank are what each run publishes. Every rank must map it, or none does: an error.
    [[nodiscard]] static Result<std::unique_ptr<Signals>> make(MPI_Comm communicator,
                                                               const std::shared_ptr<Arena>& arena,
                                                               std::size_t addresses,
                                                               std::chrono::milliseconds timeout);

    [[nodiscard]] static Index bytes(Index ranks, std::size_t addresses);

    [[nodiscard]] SignalLine& line(std::size_t rank) const;
    [[nodiscard]] Address& address(std::size_t rank, std::size_t index) const;
    [[nodiscard]] std::size_t rank() const { return rank_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
    [[nodiscard]] Index own_bytes() const { return own_ ? static_cast<Index>(own_->bytes().size()) : 0; }

    /// Ranks share cores: to wait for one is to wait until it gets its turn.
    [[nodiscard]] bool crowded() const { return looks_ == 1; }
    /// What a rank copies through the caches while it would wait for all others.
    [[nodiscard]] Index bytes_of_meeting() const { return Index{crowded() ? 128 : 16} << 10; }

    /// After a counter has grown that `rank` may wait for. No system call unless it sleeps for it.
    void tell(std::size_t rank);

    /// This rank has taken its part in one run more, all of which went well. Ranks count alike.
    void finish_run() { ++finished_; }

    /// Tells all that this rank has failed and why: in the run that is in flight, or before the next one. Peers that
    /// are still in a run before end that one well. The first to fail is quoted.
    void fail_all(const Error& error);

    /// This rank could not bind or start, and why: for those that wait for it longer than second_try.
    void excuse(const Error& error);
    /// It starts a run after all.
    void take_back_excuse();

    /// What a rank is waited for: the counter that it writes must have reached `least`.
    struct Wanted {
        std::size_t rank;
        const Counter* counter;
        std::uint64_t least;
        [[nodiscard]] bool there() const { return counter->load(std::memory_order_acquire) >= least; }
    };
    using Wanteds = std::vector<Wanted>;
    enum class Need { all, any };

    /// True when all or any of what is wanted, which is not nothing, is there; false when not within about `most`.
    /// Errors: backend when a peer failed, died, left, or did not come for as long as the timeout after `since`.
    [[nodiscard]] Result<bool> wait(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

private:
    struct Head;
    Signals() = default;
    [[nodiscard]] Head& head() const;
    [[nodiscard]] Counter& failed_from(std::size_t rank) const;  // the first run that it fails; 0: none
    [[nodiscard]] Result<void> hear_failures() const;
    [[nodiscard]] Result<void> look_after(const Wanteds& wanted, Clock::time_point since) const;
    [[nodiscard]] Result<void> look_after(const Wanted& missing, Clock::duration waited) const;
    [[nodiscard]] std::string excuse_of(const SignalLine& line) const;
    Result<bool> sleep(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Memory> own_;  // of rank 0
    Views views_;
    std::byte* start_ = nullptr;
    std::size_t rank_ = 0;
    std::size_t size_ = 0;
    std::size_t addresses_ = 0;
    std::uint64_t finished_ = 0;  // runs
    int looks_ = 0;               // before the processor is given up
    std::chrono::milliseconds timeout_{};
};

/// The waits of one run. The time is from when nothing more could be done, whoever drives the run; less what is
/// forgiven.
class Waiting {
public:
    explicit Waiting(Signals& signals) : signals_(signals) {}
    /// As Board::wait; true when nothing is wanted.
    [[nodiscard]] Result<bool> on(const Signals::Wanteds& wanted, Signals::Need need, Slice most);
    void moved() { since_.reset(); }

private:
    Signals& signals_;
    std::optional<Signals::Clock::time_point> since_;
    Signals::Clock::time_point looked_;
};

}  // namespace reshard::mpi
