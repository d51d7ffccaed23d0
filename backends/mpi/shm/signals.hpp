// How the ranks of a node tell each other how far they are. Each rank has a cache line of flags in shared memory, and a
// futex on which it sleeps. A rank that waits polls a few times, then gives up the processor, then sleeps. The wait
// ends if a peer died, failed or dropped its executor, and at the timeout.
#pragma once

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

/// The flags of one rank. Other ranks write only `bell`, and only clear `asleep`.
struct alignas(64) SignalLine {
    Counter entered;                     ///< runs begun: its buffers may be read and written
    Counter done;                        ///< runs in which it has finished reading and writing
    Counter turn;                        ///< of a run that goes in rounds: how far it is
    std::atomic<std::uint32_t> touches;  ///< it reads or writes peers' tiles now
    std::atomic<std::uint32_t> bell;     ///< futex: others add to it to wake the rank
    std::atomic<std::uint32_t> asleep;   ///< who may wake it: a rank + 1, any rank, or 0 when it is awake
    std::atomic<std::uint32_t> left;     ///< 1: it comes to no peer's memory again; 2: nor to the signals
    std::atomic<std::uint32_t> excused;  ///< it could not bind or start since its last run
    std::int32_t process;
    std::int32_t rank;  ///< of the backend
};

/// How long a call may wait before it says "not yet"; 0: it only polls.
using Slice = std::chrono::microseconds;
inline constexpr Slice only_poll{0};
inline constexpr Slice long_slice{20'000};

class Signals : NonCopyable {
public:
    using Clock = std::chrono::steady_clock;

    /// Collective. `addresses` per rank are what each run publishes. Every rank must map it, or none does: an error.
    [[nodiscard]] static Result<std::unique_ptr<Signals>> make(MPI_Comm communicator,
                                                               const std::shared_ptr<Arena>& arena,
                                                               std::size_t addresses,
                                                               std::chrono::milliseconds timeout);

    /// How the ranks of a node are related.
    struct Among {
        std::size_t rank = 0;
        std::size_t size = 1;
        bool crowded = false;  ///< they share cores
    };
    /// The signals of one rank, over bytes() zero bytes that all ranks see and that outlive the signals. Ranks may be
    /// threads of one process. Nothing can be allocated. All must be made before any is used.
    [[nodiscard]] static std::unique_ptr<Signals> over(std::byte* memory, const Among& among, std::size_t addresses,
                                                       std::chrono::milliseconds timeout);

    [[nodiscard]] static Index bytes(Index ranks, std::size_t addresses);

    /// Memory of this rank that peers come to, which is kept until all have left; its address, once.
    [[nodiscard]] Result<Address> take(Index bytes);
    [[nodiscard]] std::span<std::byte> taken() const { return taken_ ? taken_->bytes() : std::span<std::byte>(); }

    [[nodiscard]] SignalLine& line(std::size_t rank) const;
    [[nodiscard]] Address& address(std::size_t rank, std::size_t index) const;
    [[nodiscard]] std::size_t rank() const { return rank_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
    [[nodiscard]] Index own_bytes() const { return own_ ? static_cast<Index>(own_->bytes().size()) : 0; }
    [[nodiscard]] Index taken_bytes() const { return static_cast<Index>(taken().size()); }

    /// True when ranks share cores: a rank that waits must let the others run.
    [[nodiscard]] bool crowded() const { return polls_ == 1; }
    /// The bytes that a rank copies through the caches in the time of a barrier.
    [[nodiscard]] Index barrier_bytes() const { return Index{crowded() ? 128 : 16} << 10; }

    /// Wakes `rank` if it sleeps; to be called after a counter has grown that it may wait for. No system call unless it
    /// sleeps.
    void wake(std::size_t rank);

    /// Counts one more run that succeeded on this rank. All ranks count the same runs.
    void finish_run() { ++finished_; }

    /// Tells all that this rank has failed and why: in the run that is in flight, or before the next one. Peers that
    /// are still in a run before end that one well. The first to fail is quoted. When it returns no peer comes to this
    /// rank's tiles any more.
    void fail_all(const Error& error);

    /// Does what reads and writes the peers' tiles, if none of them has failed: its tiles may be gone.
    template <class Body>
    [[nodiscard]] Result<void> touch(const Body& body) {
        std::atomic<std::uint32_t>& touches = line(rank_).touches;
        touches.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        Result<void> done = hear_any_failure();
        if (done) done = body();
        touches.store(0, std::memory_order_release);
        return done;
    }

    /// Says that this rank could not bind or start, and why, to ranks that wait for it longer than second_try.
    void excuse(const Error& error);
    /// It starts a run after all.
    void take_back_excuse();

    /// A counter of another rank, which must have reached `least`.
    struct Wanted {
        std::size_t rank;
        const Counter* counter;
        std::uint64_t least;
        [[nodiscard]] bool there() const { return counter->load(std::memory_order_acquire) >= least; }
    };
    using Wanteds = std::vector<Wanted>;
    enum class Need { all, any };

    /// Waits for all or any of `wanted`, which is not empty. False when that takes longer than about `most`. Errors:
    /// backend when a peer failed, died, left, or did not come for as long as the timeout after `since`.
    [[nodiscard]] Result<bool> wait(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    ~Signals();

private:
    struct Head;
    Signals() = default;
    void begin(std::byte* memory, std::int32_t rank, bool crowded);
    [[nodiscard]] Head& head() const;
    [[nodiscard]] Counter& failed_from(std::size_t rank) const;  // the first run that it fails; 0: none
    [[nodiscard]] Result<void> hear_failures() const;
    [[nodiscard]] Result<void> hear_any_failure() const;
    [[nodiscard]] bool is_alive(std::size_t rank) const;
    [[nodiscard]] Result<void> see_to(const Wanteds& wanted, Clock::time_point since) const;
    [[nodiscard]] Result<void> see_to(const Wanted& missing, Clock::duration waited) const;
    [[nodiscard]] std::string excuse_of(const SignalLine& line) const;
    Result<bool> sleep(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Memory> own_;    // of rank 0
    std::unique_ptr<Memory> taken_;  // of any
    Views views_;
    std::byte* start_ = nullptr;
    std::size_t rank_ = 0;
    std::size_t size_ = 0;
    std::size_t addresses_ = 0;
    std::uint64_t finished_ = 0;  // runs
    int polls_ = 0;               // before the processor is given up
    std::chrono::milliseconds timeout_{};
};

/// The waits of one run. Time counts from the last progress, whatever drives the run, less the time that is forgiven
/// (backends/common/waits.hpp).
class Waiting {
public:
    explicit Waiting(Signals& signals) : signals_(signals) {}
    /// As Signals::wait; true when nothing is wanted.
    [[nodiscard]] Result<bool> on(const Signals::Wanteds& wanted, Signals::Need need, Slice most);
    void moved() { since_.reset(); }

private:
    Signals& signals_;
    std::optional<Signals::Clock::time_point> since_;
    Signals::Clock::time_point polled_;
};

}  // namespace reshard::mpi
