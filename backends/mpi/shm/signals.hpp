// How the ranks of a node tell each other how far they are. Shared memory holds a cache line of flags for each rank,
// and a futex that the rank sleeps on. A rank that waits polls a few times, then yields the processor, then sleeps.
// The wait ends at the timeout, or when a peer dies, fails or drops its executor.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/common/waits.hpp"
#include "backends/mpi/base/handles.hpp"
#include "backends/mpi/shm/arena.hpp"

namespace reshard::mpi {

/// A counter that only grows and that only one rank writes.
using Counter = std::atomic<std::uint64_t>;

/// A core that reads a cache line may fetch its neighbour too. So lines that different ranks write are this far apart.
inline constexpr std::size_t line_pair = 128;

/// The state of one rank. Other ranks write only `bell`, and clear `asleep`. Peers look at the second pair of lines
/// after each change of theirs, and it seldom changes. So they keep it in their caches while the first one changes in
/// each run.
struct alignas(line_pair) SignalLine {
    Counter entered;                                     ///< runs begun: its buffers may be read and written
    Counter done;                                        ///< runs whose reads and writes it has finished
    Counter turn;                                        ///< how far it is in a run that has rounds
    std::atomic<std::uint32_t> touches;                  ///< 1 while it reads or writes peers' tiles
    alignas(line_pair) std::atomic<std::uint32_t> bell;  ///< futex: others add to it to wake the rank
    std::atomic<std::uint32_t> asleep;   ///< who may wake it: a rank + 1, any rank, or 0 when it is awake
    std::atomic<std::uint32_t> left;     ///< 1: it uses no peer's memory any more; 2: nor the signals
    std::atomic<std::uint32_t> excused;  ///< 1: it has failed to bind or start since its last run
    std::int32_t process;
    std::int32_t rank;  ///< its number in the backend
};

/// How long a call may wait before it returns "not yet". 0: it only polls.
using Slice = std::chrono::microseconds;
inline constexpr Slice only_poll{0};
inline constexpr Slice long_slice{20'000};

class Signals : NonCopyable {
public:
    using Clock = std::chrono::steady_clock;

    /// Collective. Each run publishes so many addresses per rank. Errors: backend unless every rank maps the memory.
    [[nodiscard]] static Result<std::unique_ptr<Signals>> make(MPI_Comm communicator,
                                                               const std::shared_ptr<Arena>& arena,
                                                               std::size_t addresses,
                                                               std::chrono::milliseconds timeout);

    /// The place of a rank in its node.
    struct Among {
        std::size_t rank = 0;
        std::size_t size = 1;
        bool crowded = false;  ///< the ranks share cores
    };
    /// Makes the signals of one rank over bytes() zero bytes that all ranks see and that outlive the signals. The
    /// threads of one process may be ranks. Make the signals of all ranks before you use any. take() is not allowed.
    [[nodiscard]] static std::unique_ptr<Signals> over(std::byte* memory, const Among& among, std::size_t addresses,
                                                       std::chrono::milliseconds timeout);

    [[nodiscard]] static Index bytes(Index ranks, std::size_t addresses);
    /// Collective. True if the ranks have fewer cores than there are ranks. See Arena::crowded.
    [[nodiscard]] static Result<bool> share_cores(MPI_Comm communicator);

    /// Takes memory of this rank that peers use, and returns its address. It is kept until all have left. Call it once.
    [[nodiscard]] Result<Address> take(Index bytes);
    [[nodiscard]] std::span<std::byte> taken() const { return taken_ ? taken_->bytes() : std::span<std::byte>(); }

    [[nodiscard]] SignalLine& line(std::size_t rank) const;
    [[nodiscard]] Address& address(std::size_t rank, std::size_t index) const;
    [[nodiscard]] std::size_t rank() const { return rank_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
    [[nodiscard]] Index own_bytes() const { return own_ ? static_cast<Index>(own_->bytes().size()) : 0; }
    [[nodiscard]] Index taken_bytes() const { return static_cast<Index>(taken().size()); }

    /// True if ranks share cores: a rank that waits must let the others run.
    [[nodiscard]] bool crowded() const { return polls_ == 1; }
    /// The bytes that a rank copies through the caches in the time of a barrier.
    [[nodiscard]] Index barrier_bytes() const { return Index{crowded() ? 128 : 16} << 10; }

    /// Wakes `rank` if it sleeps; only then it makes a system call. Call it after a counter grew that `rank` waits for.
    using Ranks = std::vector<std::size_t>;
    void wake(std::size_t rank) { wake(std::span(&rank, 1)); }
    /// The same for several ranks, with one fence for all.
    void wake(std::span<const std::size_t> ranks);
    /// Wakes all other ranks that sleep until this one goes on. pre: the counter grew by a sequentially consistent
    /// write.
    void wake_others();

    /// Counts one more successful run of this rank. All ranks count the same runs.
    void finish_run() { ++finished_; }

    /// Tells all ranks that this rank has failed and why: in the current run, or before the next one. Peers that are
    /// still in an earlier run finish it without an error. Errors quote the first rank that failed. After this returns,
    /// no peer touches the tiles of this rank.
    void fail_all(const Error& error);

    /// Runs `body`, which reads and writes the peers' tiles. Fails instead if a peer has failed: its tiles may be gone.
    template <class Body>
    [[nodiscard]] Result<void> touch(const Body& body) {
        std::atomic<std::uint32_t>& touches = line(rank_).touches;
        touches.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        Result<void> done = hear_failures();
        if (done) done = body();
        touches.store(0, std::memory_order_release);
        return done;
    }

    /// Says that this rank could not bind or start, and why. Ranks that wait for it longer than second_try report this.
    void report_failure(const Error& error);
    /// Withdraws the excuse: this rank starts a run after all.
    void take_back_excuse();

    /// A counter of another rank, and the value that it must reach.
    struct Wanted {
        std::size_t rank;
        const Counter* counter;
        std::uint64_t least;
        [[nodiscard]] bool there() const { return counter->load(std::memory_order_acquire) >= least; }
    };
    using Wanteds = std::vector<Wanted>;
    enum class Need { all, any };
    /// One counter of each of these ranks. Valid until the next call, which uses its memory again.
    [[nodiscard]] const Wanteds& counters(Counter SignalLine::*counter, std::uint64_t least,
                                          std::span<const std::size_t> ranks);

    /// True once all or any of `wanted` are there. Polls, then yields the processor some times, and does not sleep.
    /// With only_poll it looks once. Does not look whether a peer failed.
    [[nodiscard]] bool poll(const Wanteds& wanted, Need need, Slice most) const;

    /// Sleeps until all or any of `wanted` are there, which must not be empty. A poll before is often enough. Returns
    /// false if that takes longer than about `most`. Errors: backend if a peer failed, died or left, or if it did not
    /// come within the timeout after `since`.
    [[nodiscard]] Result<bool> wait(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    ~Signals();

private:
    struct Head;
    Signals() = default;
    void begin(std::byte* memory, std::int32_t rank, bool crowded);
    void wake_sleeper(std::size_t rank);
    [[nodiscard]] Head& head() const;
    [[nodiscard]] Counter& failed_from(std::size_t rank) const;  // its first failed run; 0: no run failed
    [[nodiscard]] Result<void> hear_failures() const;
    [[nodiscard]] std::string first_failure(std::size_t seen) const;
    [[nodiscard]] bool is_alive(std::size_t rank) const;
    [[nodiscard]] Result<void> see_to(const Wanteds& wanted, Clock::time_point since) const;
    [[nodiscard]] Result<void> see_to(const Wanted& missing, Clock::duration waited) const;
    [[nodiscard]] std::string excuse_of(const SignalLine& line) const;
    Result<bool> sleep(const Wanteds& wanted, Need need, Clock::time_point since, Slice most);

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Memory> own_;    // the memory of the signals, on rank 0
    std::unique_ptr<Memory> taken_;  // the memory from take()
    Views views_;
    std::byte* start_ = nullptr;
    std::size_t rank_ = 0;
    std::size_t size_ = 0;
    std::size_t addresses_ = 0;
    std::uint64_t finished_ = 0;  // runs
    int polls_ = 0;               // before a rank yields the processor
    Wanteds wanted_;
    std::chrono::milliseconds timeout_{};
};

/// The waits of one run, however it is driven. Time counts from the moment when nothing more could be done. Forgiven
/// time does not count (backends/common/waits.hpp).
class Waiting {
public:
    explicit Waiting(Signals& signals) : signals_(signals) {}
    /// As Signals::wait. Returns true if nothing is wanted.
    [[nodiscard]] Result<bool> on(const Signals::Wanteds& wanted, Signals::Need need, Slice most);
    void moved() { since_.reset(); }

private:
    Signals& signals_;
    std::optional<Signals::Clock::time_point> since_;
    Signals::Clock::time_point polled_;
};

}  // namespace reshard::mpi
