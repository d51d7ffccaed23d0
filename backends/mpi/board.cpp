#include "backends/mpi/board.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {

struct Board::Head {
    std::atomic<std::uint32_t> failure;  // 0 none, 1 being written, 2 to be read
    std::int32_t failed_rank;
    char message[464];
};

namespace {

constexpr std::size_t line_bytes = 64;
constexpr int yields = 64;  // before a waiter sleeps
constexpr long sleep_nanoseconds = 20'000'000;
constexpr std::uint32_t anyone = UINT32_MAX;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
    return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

Board::Head& Board::head() const { return *reinterpret_cast<Head*>(start_); }

BoardLine& Board::line(std::size_t rank) const {
    return reinterpret_cast<BoardLine*>(start_ +
                                        ceil_divide(Index{sizeof(Head)}, Index{line_bytes}) * line_bytes)[rank];
}

Address& Board::address(std::size_t rank, std::size_t index) const {
    auto* first = reinterpret_cast<Address*>(&line(size_));
    return first[rank * addresses_ + index];
}

Index Board::bytes(Index ranks, std::size_t addresses) {
    return 1024 + ranks * static_cast<Index>(sizeof(BoardLine) + addresses * sizeof(Address));
}

Result<std::unique_ptr<Board>> Board::make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena,
                                           std::size_t addresses, std::chrono::milliseconds patience) {
    std::unique_ptr<Board> board(new Board);
    board->rank_ = static_cast<std::size_t>(rank_of(communicator));
    board->size_ = static_cast<std::size_t>(size_of_communicator(communicator));
    board->arena_ = arena;
    board->addresses_ = addresses;
    board->patience_ = patience;
    const auto bytes = static_cast<std::size_t>(Board::bytes(static_cast<Index>(board->size_), addresses));
    Result<void> made;
    Address place;
    if (board->rank_ == 0) {
        auto memory = arena->take(static_cast<Index>(bytes));
        if (!memory) {
            made = tl::unexpected(memory.error());
        } else {
            board->own_ = std::move(*memory);
            std::memset(board->own_->bytes().data(), 0, bytes);
            place = arena->find(board->own_->bytes().data(), static_cast<Index>(bytes)).value_or(Address{});
        }
    }
    const int code = MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, communicator);
    if (auto done = checked(code, "MPI_Bcast"); !done) return tl::unexpected(done.error());
    auto start = arena->reach(place);
    if (made && !start) made = tl::unexpected(start.error());
    if (auto all = all_succeeded(communicator, made, 1); !all) return tl::unexpected(all.error());
    board->start_ = *start;
    board->line(board->rank_).process = getpid();
    // Where ranks have a core each, a look is cheaper than sleep; where they share cores, it keeps the peer from
    // running.
    int cores = usable_cores();
    MPI_Allreduce(MPI_IN_PLACE, &cores, 1, MPI_INT, MPI_MAX, communicator);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    board->looks_ = static_cast<std::size_t>(std::max<long>(cores, online)) >= board->size_ ? 4000 : 1;
    return board;
}

// What this rank wrote comes before it looks whether the other sleeps; the other says so before it looks a last time.
void Board::tell(std::size_t rank) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    BoardLine& theirs = line(rank);
    std::uint32_t caller = theirs.asleep.load(std::memory_order_relaxed);
    if (caller != rank_ + 1 && caller != anyone) return;
    if (!theirs.asleep.compare_exchange_strong(caller, 0)) return;
    theirs.bell.fetch_add(1, std::memory_order_release);
    futex(theirs.bell, FUTEX_WAKE, 1, nullptr);
}

void Board::fail_all(const Error& error) {
    std::uint32_t none = 0;
    if (head().failure.compare_exchange_strong(none, 1)) {
        head().failed_rank = static_cast<std::int32_t>(rank_);
        const std::size_t length = std::min(error.message.size(), sizeof(Head::message) - 1);
        std::memcpy(head().message, error.message.data(), length);
        head().message[length] = '\0';
        head().failure.store(2, std::memory_order_release);
    }
    for (std::size_t rank = 0; rank < size_; ++rank) {
        line(rank).bell.fetch_add(1, std::memory_order_release);
        futex(line(rank).bell, FUTEX_WAKE, 1, nullptr);
    }
}

Result<void> Board::look_after(const Wanted& missing, Clock::time_point since) const {
    if (head().failure.load(std::memory_order_acquire) == 2) {
        return fail(Code::backend, fmt::format("rank {} failed: {}", head().failed_rank, head().message));
    }
    if (kill(static_cast<pid_t>(line(missing.rank).process), 0) != 0 && errno == ESRCH) {
        return fail(Code::backend, fmt::format("rank {} died", missing.rank));
    }
    if (Clock::now() - since < patience_) return {};
    const bool started = line(missing.rank).entered.load(std::memory_order_relaxed) >=
                         line(rank_).entered.load(std::memory_order_relaxed);
    return fail(Code::backend, fmt::format("waited {} ms for rank {}, which never {}", patience_.count(), missing.rank,
                                           started ? "finished" : "started"));
}

Result<bool> Board::wait(const Wanteds& wanted, Need need, Clock::time_point since, bool block) {
    const auto ready = [&] {
        return need == Need::all ? std::ranges::all_of(wanted, &Wanted::there)
                                 : std::ranges::any_of(wanted, &Wanted::there);
    };
    for (int look = 0; look < (block ? looks_ : 1); ++look) {
        if (ready()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (!block) {
        const auto missing = std::ranges::find_if_not(wanted, &Wanted::there);
        if (missing == wanted.end()) return true;
        return look_after(*missing, since).map([] { return false; });
    }
    for (int i = 0; i < yields; ++i) {
        sched_yield();
        if (ready()) return true;
    }
    return sleep_until(wanted, need, since);
}

// Who needs all is called by the first that is missing, and then by the next: one call for each that is late.
Result<bool> Board::sleep_until(const Wanteds& wanted, Need need, Clock::time_point since) {
    BoardLine& mine = line(rank_);
    while (true) {
        const std::uint32_t heard = mine.bell.load(std::memory_order_acquire);
        const auto missing = std::ranges::find_if_not(wanted, &Wanted::there);
        if (missing == wanted.end()) return true;
        mine.asleep.store(need == Need::all ? static_cast<std::uint32_t>(missing->rank) + 1 : anyone);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const bool came = need == Need::all ? missing->there() : std::ranges::any_of(wanted, &Wanted::there);
        auto well = look_after(*missing, since);
        if (well && !came) {
            const timespec timeout{0, sleep_nanoseconds};
            futex(mine.bell, FUTEX_WAIT, heard, &timeout);
        }
        mine.asleep.store(0);
        if (!well) return tl::unexpected(well.error());
        if (need == Need::any && std::ranges::any_of(wanted, &Wanted::there)) return true;
    }
}

// The others may still look whether this rank is done, so the board's memory is not given back before all have left.
Board::~Board() {
    if (start_ == nullptr) return;
    line(rank_).left.store(1, std::memory_order_release);
    if (!own_) return;
    const BoardLine* lines = &line(0);
    const std::size_t ranks = size_;
    arena_->retire(std::move(own_), [lines, ranks] {
        return std::all_of(lines, lines + ranks,
                           [](const BoardLine& one) { return one.left.load(std::memory_order_acquire) != 0; });
    });
}

Result<bool> Waiting::on(const Board::Wanteds& wanted, Board::Need need, bool block) {
    if (wanted.empty()) return true;
    if (!since_) since_ = Board::Clock::now();
    auto there = board_.wait(wanted, need, *since_, block);
    if (there && *there) since_.reset();
    return there;
}

}  // namespace reshard::mpi
