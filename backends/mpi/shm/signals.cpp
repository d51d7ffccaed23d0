#include "backends/mpi/shm/signals.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/shm/excuse.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

struct Signals::Head {
    std::atomic<std::uint32_t> failure;  // 0: no failure, 1: being written, 2: readable
    std::int32_t failed_rank;
    char message[464];
    Excuse excuse;
};

namespace {

// Before a rank sleeps. A yield lasts a slice of the scheduler if another process wants the core.
constexpr int yields = 64;
constexpr auto yield_time_max = std::chrono::microseconds(200);
constexpr std::uint32_t anyone = UINT32_MAX;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
    return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

// Counts the cores of all ranks on the machine together, since each rank may be bound to its own.
Result<long> usable_cores(MPI_Comm communicator) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
    std::array<std::byte, sizeof cores> bits{};
    std::memcpy(bits.data(), &cores, sizeof cores);
    RESHARD_ASSIGN(bits, reduced(communicator, bits, MPI_BYTE, MPI_BOR));
    std::memcpy(&cores, bits.data(), sizeof cores);
    const int count = CPU_COUNT(&cores);
    return count > 0 ? count : sysconf(_SC_NPROCESSORS_ONLN);
}

bool ready(const Signals::Wanteds& wanted, Signals::Need need) {
    return need == Signals::Need::all ? std::ranges::all_of(wanted, &Signals::Wanted::there)
                                      : std::ranges::any_of(wanted, &Signals::Wanted::there);
}

void write_text(const std::string& text, char* place, std::size_t size) { place[text.copy(place, size - 1)] = '\0'; }

}  // namespace

Signals::Head& Signals::head() const { return *reinterpret_cast<Head*>(start_); }

SignalLine& Signals::line(std::size_t rank) const {
    constexpr std::size_t pairs = (sizeof(Head) + line_pair - 1) / line_pair;
    static_assert(pairs * line_pair <= 1024);  // bytes() counts on it
    return reinterpret_cast<SignalLine*>(start_ + pairs * line_pair)[rank];
}

Address& Signals::address(std::size_t rank, std::size_t index) const {
    auto* first = reinterpret_cast<Address*>(&failed_from(size_));
    return first[rank * addresses_ + index];
}

Counter& Signals::failed_from(std::size_t rank) const { return reinterpret_cast<Counter*>(&line(size_))[rank]; }

Index Signals::bytes(Index ranks, std::size_t addresses) {
    return 1024 + ranks * static_cast<Index>(sizeof(SignalLine) + sizeof(Counter) + addresses * sizeof(Address));
}

Result<bool> Signals::share_cores(MPI_Comm communicator) {
    RESHARD_TRY(const auto& cores, usable_cores(communicator));
    return cores < size_of_communicator(communicator);
}

Result<std::unique_ptr<Signals>> Signals::make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena,
                                               std::size_t addresses, std::chrono::milliseconds timeout) {
    std::unique_ptr<Signals> signals(new Signals);
    signals->rank_ = static_cast<std::size_t>(rank_of(communicator));
    signals->size_ = static_cast<std::size_t>(size_of_communicator(communicator));
    signals->arena_ = arena;
    signals->addresses_ = addresses;
    signals->timeout_ = timeout;
    const auto bytes = static_cast<std::size_t>(Signals::bytes(static_cast<Index>(signals->size_), addresses));
    Result<Address> taken = Address{};
    if (signals->rank_ == 0) taken = arena->take(static_cast<Index>(bytes), signals->own_);
    if (signals->own_) std::memset(signals->own_->bytes().data(), 0, bytes);
    RESHARD_TRY(const Address place, broadcast(communicator, taken.value_or(Address{}), 0));
    const auto reach = [&](const Address&) { return arena->reach(place, signals->views_); };
    RESHARD_TRY(auto* const memory, all_succeeded(communicator, taken.and_then(reach), 1));
    signals->begin(memory, static_cast<std::int32_t>(arena->rank()), arena->crowded());
    return signals;
}

std::unique_ptr<Signals> Signals::over(std::byte* memory, const Among& among, std::size_t addresses,
                                       std::chrono::milliseconds timeout) {
    std::unique_ptr<Signals> signals(new Signals);
    signals->rank_ = among.rank;
    signals->size_ = among.size;
    signals->addresses_ = addresses;
    signals->timeout_ = timeout;
    signals->begin(memory, static_cast<std::int32_t>(among.rank), among.crowded);
    return signals;
}

// Polling is cheaper than sleeping if each rank has a core. If ranks share cores, it keeps the peer from running.
void Signals::begin(std::byte* memory, std::int32_t rank, bool crowded) {
    start_ = memory;
    line(rank_).process = getpid();
    line(rank_).rank = rank;
    polls_ = crowded ? 1 : 4000;
}

Result<Address> Signals::take(Index bytes) { return arena_->take(bytes, taken_); }

// A rank writes its counter before it checks whether the other one sleeps. The other one says that it sleeps before it
// polls a last time. So one of them sees the other.
void Signals::wake(std::span<const std::size_t> ranks) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (const std::size_t rank : ranks) wake_sleeper(rank);
}

void Signals::wake_others() {
    for (std::size_t rank = 0; rank < size_; ++rank) {
        if (rank != rank_) wake_sleeper(rank);
    }
}

void Signals::wake_sleeper(std::size_t rank) {
    SignalLine& theirs = line(rank);
    std::uint32_t caller = theirs.asleep.load();
    if (caller != rank_ + 1 && caller != anyone) return;
    if (!theirs.asleep.compare_exchange_strong(caller, 0)) return;
    theirs.bell.fetch_add(1, std::memory_order_release);
    futex(theirs.bell, FUTEX_WAKE, 1, nullptr);
}

void Signals::fail_all(const Error& error) {
    std::uint32_t none = 0;
    if (head().failure.compare_exchange_strong(none, 1)) {
        head().failed_rank = line(rank_).rank;
        write_text(error.message, head().message, sizeof(Head::message));
        head().failure.store(2, std::memory_order_release);
    }
    std::uint64_t never = 0;
    failed_from(rank_).compare_exchange_strong(never, finished_ + 1);
    for (std::size_t rank = 0; rank < size_; ++rank) {
        line(rank).bell.fetch_add(1, std::memory_order_release);
        futex(line(rank).bell, FUTEX_WAKE, 1, nullptr);
    }
    // A peer sets `touches` before it looks for failures, so one of the two ranks sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const auto until = Clock::now() + timeout_;
    for (std::size_t rank = 0; rank < size_; ++rank) {
        while (line(rank).touches.load(std::memory_order_acquire) != 0 && is_alive(rank) && Clock::now() < until)
            sched_yield();
    }
}

// The text belongs to one rank at a time. Any other excuse comes with no text.
void Signals::report_failure(const Error& error) {
    head().excuse.say(rank_, error.message);
    line(rank_).excused.store(1, std::memory_order_release);
}

void Signals::take_back_excuse() {
    if (line(rank_).excused.load(std::memory_order_relaxed) == 0) return;
    line(rank_).excused.store(0, std::memory_order_release);
    head().excuse.take_back(rank_);
}

std::string Signals::excuse_of(const SignalLine& excused) const {
    return head().excuse.of(static_cast<std::size_t>(&excused - &line(0))).value_or("could not bind or start");
}

// Sees failures up to the current run, and quotes the first of all: the others may be its consequences.
Result<void> Signals::hear_failures() const {
    if (head().failure.load(std::memory_order_acquire) == 0) return {};
    for (std::size_t rank = 0; rank < size_; ++rank) {
        const std::uint64_t from = failed_from(rank).load(std::memory_order_acquire);
        if (from != 0 && from <= finished_ + 1) return fail(Code::backend, first_failure(rank));
    }
    return {};
}

// The rank that failed first may still be writing why. It may also have died.
std::string Signals::first_failure(std::size_t seen) const {
    const auto until = Clock::now() + second_try;
    while (head().failure.load(std::memory_order_acquire) != 2) {
        if (Clock::now() > until) return fmt::format("rank {} failed", line(seen).rank);
        sched_yield();
    }
    return fmt::format("rank {} failed: {}", head().failed_rank, head().message);
}

bool Signals::is_alive(std::size_t rank) const {
    return kill(static_cast<pid_t>(line(rank).process), 0) == 0 || errno != ESRCH;
}

Result<void> Signals::see_to(const Wanteds& wanted, Clock::time_point since) const {
    RESHARD_CHECK(hear_failures());
    const auto waited = Clock::now() - since;
    // A rank that sees one of these flags also sees everything that the peer did before it set the flag.
    for (const Wanted& one : wanted) {
        const SignalLine& theirs = line(one.rank);
        if (theirs.left.load(std::memory_order_acquire) != 0 && !one.there()) {
            return fail(Code::backend, fmt::format("rank {} dropped its executor", theirs.rank));
        }
        if (waited > second_try && theirs.excused.load(std::memory_order_acquire) != 0 && !one.there()) {
            return fail(Code::backend, fmt::format("rank {}: {}", theirs.rank, excuse_of(theirs)));
        }
    }
    const auto missing = std::ranges::find_if_not(wanted, &Wanted::there);
    return missing == wanted.end() ? Result<void>() : see_to(*missing, waited);
}

Result<void> Signals::see_to(const Wanted& missing, Clock::duration waited) const {
    const SignalLine& theirs = line(missing.rank);
    if (!is_alive(missing.rank)) return fail(Code::backend, fmt::format("rank {} died", theirs.rank));
    if (waited < timeout_) return {};
    const bool started =
        theirs.entered.load(std::memory_order_relaxed) >= line(rank_).entered.load(std::memory_order_relaxed);
    return fail(Code::backend, fmt::format("rank {} did not {} the run within {}", theirs.rank,
                                           started ? "finish its part of" : "start", in_words(timeout_)));
}

const Signals::Wanteds& Signals::counters(Counter SignalLine::*counter, std::uint64_t least,
                                          std::span<const std::size_t> ranks) {
    wanted_.clear();
    for (const std::size_t rank : ranks) wanted_.push_back({rank, &(line(rank).*counter), least});
    return wanted_;
}

bool Signals::poll(const Wanteds& wanted, Need need, Slice most) const {
    if (most == only_poll) return ready(wanted, need);
    for (int i = 0; i < polls_; ++i) {
        if (ready(wanted, need)) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    const auto until = Clock::now() + yield_time_max;
    for (int i = 0; i < yields; ++i) {
        sched_yield();
        if (ready(wanted, need)) return true;
        if (Clock::now() > until) break;
    }
    return false;
}

Result<bool> Signals::wait(const Wanteds& wanted, Need need, Clock::time_point since, Slice most) {
    if (most > only_poll) return sleep(wanted, need, since, most);
    return see_to(wanted, since).map([&] { return ready(wanted, need); });
}

// A rank that needs all counters is woken by the first missing rank, then by the next: one wake for each late rank.
Result<bool> Signals::sleep(const Wanteds& wanted, Need need, Clock::time_point since, Slice most) {
    SignalLine& mine = line(rank_);
    const auto until = Clock::now() + most;
    while (true) {
        const std::uint32_t heard = mine.bell.load(std::memory_order_acquire);
        const auto missing = std::ranges::find_if_not(wanted, &Wanted::there);
        if (missing == wanted.end()) return true;
        mine.asleep.store(need == Need::all ? static_cast<std::uint32_t>(missing->rank) + 1 : anyone);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const bool came = need == Need::all ? missing->there() : std::ranges::any_of(wanted, &Wanted::there);
        auto well = see_to(wanted, since);
        if (well && !came) {
            const timespec timeout{0, std::chrono::nanoseconds(most).count()};
            futex(mine.bell, FUTEX_WAIT, heard, &timeout);
        }
        mine.asleep.store(0);
        if (!well) return tl::unexpected(well.error());
        if (need == Need::any && std::ranges::any_of(wanted, &Wanted::there)) return true;
        if (Clock::now() >= until) return std::ranges::all_of(wanted, &Wanted::there);
    }
}

// Other ranks may still use the memory that this rank took, and ask whether it is done. That memory is kept until all
// have left. The signals are kept until all know that.
Signals::~Signals() {
    if (start_ == nullptr) return;
    const auto all_left = [lines = &line(0), ranks = size_](std::uint32_t least) {
        return std::all_of(lines, lines + ranks,
                           [&](const SignalLine& one) { return one.left.load(std::memory_order_acquire) >= least; });
    };
    SignalLine& mine = line(rank_);
    mine.left.store(taken_ ? 1 : 2, std::memory_order_release);
    if (taken_) {
        arena_->retire(std::move(taken_), [all_left, &mine, views = views_] {
            if (!all_left(1)) return false;
            mine.left.store(2, std::memory_order_release);
            return true;
        });
    }
    if (own_) arena_->retire(std::move(own_), [all_left] { return all_left(2); });
}

Result<bool> Waiting::on(const Signals::Wanteds& wanted, Signals::Need need, Slice most) {
    const bool all = std::ranges::all_of(wanted, &Signals::Wanted::there);
    if (all || (most > only_poll && signals_.poll(wanted, need, most))) {
        since_.reset();
        return true;
    }
    const auto now = Signals::Clock::now();
    since_ = since_ ? *since_ + forgiven(now - polled_, signals_.timeout()) : now;
    auto there = signals_.wait(wanted, need, *since_, most);
    if (there && *there) {
        since_.reset();
    } else {
        polled_ = most > only_poll ? Signals::Clock::now() : now;
    }
    return there;
}

}  // namespace reshard::mpi
