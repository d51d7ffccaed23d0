#include "backends/mpi/shm/node_board.hpp"

#include <cstddef>
#include <cstring>

#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr std::uint64_t cannot_come = std::uint64_t{1} << 63;

Index signal_bytes(std::size_t ranks) {
    return ceil_divide(Signals::bytes(static_cast<Index>(ranks), 0), Index{line_pair}) * Index{line_pair};
}

}  // namespace

// The memory lives as long as any rank maps it, so no rank waits for another when it drops its board.
Result<std::unique_ptr<Board>> NodeBoard::make(MPI_Comm communicator, bool crowded, std::chrono::milliseconds timeout) {
    const auto rank = static_cast<std::size_t>(rank_of(communicator));
    const auto size = static_cast<std::size_t>(size_of_communicator(communicator));
    auto own = rank == 0 ? Segment::make(bytes(size)) : Result<Segment>(fail(Code::backend, "rank 0 makes the board"));
    if (own) own->leave_to_others();
    RESHARD_TRY(const auto& name, broadcast(communicator, own ? own->name() : SegmentName{}, 0));
    auto reached = rank == 0 ? std::move(own) : Segment::open(name);
    RESHARD_TRY(auto& segment, all_succeeded(communicator, std::move(reached), 1));
    auto board = std::make_unique<NodeBoard>(segment.data(), Signals::Among{rank, size, crowded}, timeout);
    board->segment_.emplace(std::move(segment));
    return board;
}

NodeBoard::NodeBoard(std::byte* memory, const Signals::Among& among, std::chrono::milliseconds timeout)
    : letters_(memory + signal_bytes(among.size)), signals_(Signals::over(memory, among, 0, timeout)) {
    for (std::size_t rank = 0; rank < among.size; ++rank) {
        if (rank != among.rank) others_.push_back({rank, &place(rank, 0).arrived, 0});
    }
}

Index NodeBoard::bytes(std::size_t ranks) {
    return signal_bytes(ranks) + static_cast<Index>(sizeof(Closed) + 2 * ranks * sizeof(Place));
}

NodeBoard::Closed& NodeBoard::closed() const { return *reinterpret_cast<Closed*>(letters_); }

NodeBoard::Place& NodeBoard::place(std::size_t rank, std::uint64_t number) const {
    return reinterpret_cast<Place*>(letters_ + sizeof(Closed))[2 * rank + number % 2];
}

// The text of a letter is copied only after a failure: most letters have none.
bool NodeBoard::come(const Letter& own) {
    Place& mine = place(signals_->rank(), own.number);
    std::uint64_t before = mine.arrived.load(std::memory_order_acquire);
    if (!is_open()) return false;
    if ((before & cannot_come) != 0) return shut();
    if (own.code < 0)
        std::memcpy(static_cast<void*>(&mine.letter), &own, offsetof(Letter, text));
    else
        mine.letter = own;
    if (!mine.arrived.compare_exchange_strong(before, own.number)) return shut();
    if (closed().sleepers.load() != 0) signals_->wake_others();
    return true;
}

bool NodeBoard::has_come(int rank, std::uint64_t number) const {
    const std::uint64_t arrived = place(static_cast<std::size_t>(rank), number).arrived.load(std::memory_order_acquire);
    return arrived >= number && (arrived & cannot_come) == 0;
}

// After a meeting by letters the counters say that all came. The letters here may then be of an earlier meeting.
bool NodeBoard::all_arrived(std::uint64_t number) const {
    for (std::size_t rank = 0; rank < signals_->size(); ++rank) {
        if (!has_come(static_cast<int>(rank), number) || place(rank, number).letter.number != number) return false;
    }
    return true;
}

// Reports of the signals, such as a peer that died, are left to the letters.
bool NodeBoard::all_come(std::uint64_t number, std::chrono::microseconds most) {
    if (all_arrived(number)) return true;
    if (most <= only_poll || others_.empty()) return false;
    for (Signals::Wanted& other : others_) other = {other.rank, &place(other.rank, number).arrived, number};
    if (!signals_->poll(others_, Signals::Need::all, most)) {
        ++closed().sleepers;
        static_cast<void>(signals_->wait(others_, Signals::Need::all, Signals::Clock::now(), most));
        --closed().sleepers;
    }
    return all_arrived(number);
}

bool NodeBoard::agrees(const Letter& own) const {
    for (std::size_t rank = 0; rank < signals_->size(); ++rank) {
        const Letter& theirs = place(rank, own.number).letter;
        if (theirs.code >= 0 || theirs.value != own.value || theirs.call != own.call) return false;
    }
    return true;
}

const Letter& NodeBoard::letter_of(int rank, std::uint64_t number) const {
    return place(static_cast<std::size_t>(rank), number).letter;
}

bool NodeBoard::is_open() const { return closed().flag.load(std::memory_order_acquire) == 0; }

// Each rank that sees a mark closes the board before it goes on. So no rank comes to a later meeting while a peer still
// reads the letters of this one.
bool NodeBoard::shut() {
    closed().flag.store(1, std::memory_order_release);
    return false;
}

bool NodeBoard::close(std::uint64_t number) {
    for (std::size_t rank = 0; rank < signals_->size(); ++rank) {
        Counter& arrived = place(rank, number).arrived;
        std::uint64_t seen = arrived.load(std::memory_order_acquire);
        bool marked = (seen & cannot_come) != 0;
        while (seen < number && !marked) marked = arrived.compare_exchange_weak(seen, number | cannot_come);
        if (marked || (seen & cannot_come) != 0) return !shut();
    }
    return false;
}

void NodeBoard::open_after(std::uint64_t number) {
    for (std::size_t rank = 0; rank < signals_->size(); ++rank) {
        place(rank, number).arrived.store(number, std::memory_order_release);
        place(rank, number + 1).arrived.store(number - 1, std::memory_order_release);
    }
    closed().flag.store(0, std::memory_order_release);
}

}  // namespace reshard::mpi
