#include "backends/mpi/shm/mailboxes.hpp"

#include <algorithm>

#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// A core that reads a line may fetch its neighbour too. So boxes do not share such a pair of lines.
constexpr Index box_unit = line_pair;

// Takes the first cache lines of a message from the other cores, since this one writes them next. GCC has an
// instruction for that only if it compiles for newer processors; older ones ignore the instruction.
void expect_to_write(const std::byte* box, Index bytes) {
    constexpr Index most = 1024;  // later lines are taken while the first ones are written
    for (Index at = 0; at < std::min(bytes, most); at += 64) {
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(box[at]));
#else
        __builtin_prefetch(box + at, 1);
#endif
    }
}

// The boxes of one sender in the memory of a rank.
struct Granted {
    std::int64_t offset = 0;
    std::int64_t box_bytes = 0;  // 0: the sender has none
};

// The offset of the mark of a message of so many bytes. The mark lies in one cache line.
Index place_of_mark(Index bytes) {
    constexpr Index line = 64;
    const Index place = ceil_divide(bytes, Index{alignof(MailMark)}) * Index{alignof(MailMark)};
    return place % line + Index{sizeof(MailMark)} <= line ? place : ceil_divide(place, line) * line;
}

Index box_bytes_of(Index bytes) {
    return ceil_divide(place_of_mark(bytes) + Index{sizeof(MailMark)}, box_unit) * box_unit;
}

std::vector<Index> box_bytes_of(const std::vector<PeerRegion>& parts, std::size_t ranks) {
    std::vector<Index> bytes(ranks, 0);
    for (const PeerRegion& part : parts) {
        Index& used = bytes[part.peer];
        used = place_of(part, used) + sent_bytes(part);
    }
    for (Index& used : bytes) used = used == 0 ? 0 : box_bytes_of(used);
    return bytes;
}

}  // namespace

Index Mailboxes::bytes(const std::vector<PeerRegion>& receives, std::size_t ranks) {
    Index all = 0;
    for (const Index bytes : box_bytes_of(receives, ranks)) all += 2 * bytes;
    return all;
}

Result<void> Mailboxes::make(MPI_Comm communicator, Signals& signals, Arena& arena, const PeerRegions& parts) {
    signals_ = &signals;
    const std::size_t ranks = signals.size();
    std::vector<Granted> own(ranks);
    Index offset = 0;
    const std::vector<Index> box_bytes = box_bytes_of(parts.receives, ranks);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
        own[peer] = {offset, box_bytes[peer]};
        offset += 2 * box_bytes[peer];
    }
    RESHARD_TRY(const auto& granted, exchanged(communicator, own));
    const auto taken = offset == 0 ? Address{} : signals.take(offset);
    std::ranges::fill(signals.taken(), std::byte{0});
    RESHARD_TRY(const auto& places, gathered(communicator, taken.value_or(Address{})));
    Result<void> made = taken.map([](const Address&) {});
    // Each rank begins with the next rank, so that not all begin with the first.
    for (std::size_t k = 1; k < ranks && made; ++k) {
        const std::size_t peer = (signals.rank() + k) % ranks;
        if (own[peer].box_bytes > 0) {
            add_pair(incoming_, peer, signals.taken().data() + own[peer].offset,
                     {parts.receives, peer, BouncePieces::Side::receiver});
        }
        if (granted[peer].box_bytes == 0) continue;
        auto reached = arena.reach(places[peer], views_);
        if (reached) {
            add_pair(outgoing_, peer, *reached + granted[peer].offset, {parts.sends, peer, BouncePieces::Side::sender});
        } else {
            made = tl::unexpected(reached.error());
        }
    }
    for (const PeerRegion& part : parts.own)
        staying_.emplace_back(part.array, copy_of_part(part, BouncePieces::Side::both));
    find_one_way();
    return all_succeeded(communicator, made, 1);
}

void Mailboxes::add_pair(std::vector<Pair>& pairs, std::size_t peer, std::byte* boxes, PackedParts parts) {
    const Index bytes = parts.bytes();
    pairs.push_back({peer, boxes, box_bytes_of(bytes), place_of_mark(bytes), std::move(parts)});
}

void Mailboxes::find_one_way() {
    for (const Pair& pair : outgoing_) {
        receivers_.push_back(pair.peer);
        if (std::ranges::find(incoming_, pair.peer, &Pair::peer) == incoming_.end())
            free_.push_back({pair.peer, &signals_->line(pair.peer).done, 0});
    }
    for (const Pair& pair : incoming_) {
        for (const std::uint64_t run : {0, 1}) come_[run].push_back({pair.peer, &pair.mark_of(run).run, 0});
        if (std::ranges::find(receivers_, pair.peer) == receivers_.end()) unanswered_.push_back(pair.peer);
    }
}

const Signals::Wanteds& Mailboxes::free_for(std::uint64_t run) {
    for (Signals::Wanted& one : free_) one.least = run < 2 ? 0 : run - 2;
    return free_;
}

const Signals::Wanteds& Mailboxes::come_for(std::uint64_t run) {
    Signals::Wanteds& come = come_[run % 2];
    for (Signals::Wanted& one : come) one.least = run;
    return come;
}

void Mailboxes::send(std::uint64_t run, const std::vector<const std::byte*>& sources, const Presence& own) {
    for (const Pair& pair : outgoing_) {
        pair.parts.pack(sources, pair.box(run));
        MailMark& mark = pair.mark_of(run);
        mark.presence = own;
        mark.run.store(run, std::memory_order_release);
    }
    signals_->wake(receivers_);
}

bool Mailboxes::all_have(std::uint64_t run, const Presence& own) const {
    return incoming_.size() + 1 == signals_->size() &&
           std::ranges::all_of(incoming_, [&](const Pair& pair) { return pair.mark_of(run).presence == own; });
}

void Mailboxes::copy_own(const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets) const {
    for (const auto& [array, copy] : staying_) copy.run(sources[array], targets[array]);
}

void Mailboxes::read(std::uint64_t run, const std::vector<std::byte*>& targets) {
    for (const Pair& pair : incoming_) pair.parts.unpack(pair.box(run), targets);
    free(run);
}

void Mailboxes::find(std::uint64_t run, std::vector<const std::byte*>& messages) const {
    for (const Pair& pair : incoming_) messages[pair.peer] = pair.box(run);
}

void Mailboxes::free(std::uint64_t run) {
    // The next messages go to the boxes of the run before, which peers that answer have read.
    for (const Pair& pair : outgoing_) expect_to_write(pair.box(run + 1), pair.box_bytes);
    if (unanswered_.empty()) return;
    signals_->line(signals_->rank()).done.store(run, std::memory_order_release);
    signals_->wake(unanswered_);
}

}  // namespace reshard::mpi
