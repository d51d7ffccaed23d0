#include "backends/mpi/window.hpp"

#include <algorithm>
#include <numeric>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {
namespace {

constexpr Index line_bytes = 64;
constexpr Index staying_bytes = Index{64} << 10;  // a piece of what stays, at most

std::vector<Part> parts_of(const std::vector<Part>& parts, std::size_t peer) {
    std::vector<Part> with_peer;
    std::ranges::copy_if(parts, std::back_inserter(with_peer), [&](const Part& part) { return part.peer == peer; });
    return with_peer;
}

std::vector<Index> bytes_by_peer(const std::vector<Part>& parts, std::size_t ranks) {
    std::vector<Index> bytes(ranks);
    for (const Part& part : parts) bytes[part.peer] += bytes_of(part.target);
    return bytes;
}

}  // namespace

std::vector<WindowSlot> deal_window(const std::vector<Index>& incoming, Index window_bytes) {
    const Index all = std::accumulate(incoming.begin(), incoming.end(), Index{0});
    const auto senders = static_cast<Index>(std::ranges::count_if(incoming, [](Index bytes) { return bytes > 0; }));
    Index offset = senders * static_cast<Index>(sizeof(SlotFlags));
    const Index halves = std::min(std::max<Index>(window_bytes - offset, 0), 2 * all);
    std::vector<WindowSlot> slots(incoming.size());
    Index flags = 0;
    for (std::size_t i = 0; i < incoming.size(); ++i) {
        if (incoming[i] == 0) continue;
        // In proportion, without a product that leaves 64 bits.
        const auto share = static_cast<Index>(static_cast<double>(halves) / 2 *
                                              (static_cast<double>(incoming[i]) / static_cast<double>(all)));
        const Index half = std::min(std::max(share / line_bytes, Index{1}) * line_bytes,
                                    ceil_divide(incoming[i], line_bytes) * line_bytes);
        slots[i] = {flags, offset, half};
        flags += static_cast<Index>(sizeof(SlotFlags));
        offset += 2 * half;
    }
    return slots;
}

Result<void> Windows::make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena, const Parts& parts,
                           Index window_bytes) {
    const auto ranks = static_cast<std::size_t>(size_of_communicator(communicator));
    const auto rank = static_cast<std::size_t>(rank_of(communicator));
    const std::vector<WindowSlot> slots = deal_window(bytes_by_peer(parts.receives, ranks), window_bytes);
    std::vector<WindowSlot> granted(ranks);  // in the peers' windows
    const int code = MPI_Alltoall(slots.data(), sizeof(WindowSlot), MPI_BYTE, granted.data(), sizeof(WindowSlot),
                                  MPI_BYTE, communicator);
    if (auto done = checked(code, "MPI_Alltoall"); !done) return done;
    Address place;
    Result<void> made;
    if (!parts.receives.empty()) {
        Index bytes = 0;
        for (const WindowSlot& slot : slots) {
            bytes = std::max(bytes, slot.half_bytes > 0 ? slot.offset + 2 * slot.half_bytes : 0);
        }
        auto window = arena->take(bytes);
        if (!window) {
            made = tl::unexpected(window.error());
        } else {
            own_ = std::move(*window);
            const std::size_t flags = std::min(own_->bytes().size(), ranks * sizeof(SlotFlags));
            std::ranges::fill(own_->bytes().first(flags), std::byte{0});
            place = arena->find(own_->bytes().data(), bytes).value_or(Address{});
        }
    }
    const auto places = gathered(communicator, place);
    if (!places) return tl::unexpected(places.error());
    const auto pair_in = [&](std::size_t peer, const std::vector<Part>& some, const WindowSlot& slot, std::byte* start,
                             Pieces::Side side) {
        return Pair{peer, Pieces(parts_of(some, peer), slot.half_bytes, side),
                    reinterpret_cast<SlotFlags*>(start + slot.flags), start + slot.offset, slot.half_bytes};
    };
    staying_.emplace(parts.own, staying_bytes, Pieces::Side::both);
    // Each rank begins with the next one, so that not all begin with the first.
    for (std::size_t k = 1; k < ranks && made; ++k) {
        const std::size_t peer = (rank + k) % ranks;
        if (slots[peer].half_bytes > 0) {
            incoming_.push_back(
                pair_in(peer, parts.receives, slots[peer], own_->bytes().data(), Pieces::Side::receiver));
        }
        if (granted[peer].half_bytes == 0) continue;
        auto reached = arena->reach((*places)[peer]);
        if (!reached) {
            made = tl::unexpected(reached.error());
            break;
        }
        outgoing_.push_back(pair_in(peer, parts.sends, granted[peer], *reached, Pieces::Side::sender));
    }
    wanted_.reserve(outgoing_.size() + incoming_.size());
    return all_succeeded(communicator, made, 1);
}

bool Windows::hold_all() const {
    return std::ranges::all_of(outgoing_, [](const Pair& pair) { return pair.pieces.bytes() <= pair.half_bytes; });
}

void Windows::restart(const std::vector<std::vector<char>>& to_stage, const std::vector<std::vector<char>>& from_stage,
                      const std::vector<char>& own) {
    staying_->restart(own);
    for (Pair& pair : outgoing_) pair.pieces.restart(to_stage[pair.peer]);
    for (Pair& pair : incoming_) pair.pieces.restart(from_stage[pair.peer]);
}

// At most two halves ahead of the receivers. Those that have room get a piece each in turn: the source is read once, in
// the order in which it lies, and not once for each peer. So does this rank itself.
bool Windows::fill(Board& board, const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets,
                   Store store) {
    std::size_t open = 0;
    for (Pair& pair : outgoing_) {
        pair.packed_bytes = -1;
        if (pair.pieces.finished()) continue;
        const Board::Wanted room{pair.peer, &pair.flags->drained, pair.moved < 1 ? 0 : pair.moved - 1};
        if (room.there()) {
            pair.packed_bytes = 0;
            ++open;
        } else {
            wanted_.push_back(room);
        }
    }
    if (open == 0) return false;
    while (open > 0) {
        for (Pair& pair : outgoing_) {
            if (pair.packed_bytes < 0 || pair.pieces.pack(pair.half(), pair.packed_bytes, sources)) continue;
            pair.packed_bytes = -1;
            --open;
            pair.flags->filled.store(++pair.moved, std::memory_order_release);
            board.tell(pair.peer);
        }
        staying_->move(sources, targets, store);
    }
    return true;
}

bool Windows::drain(Board& board, Pair& pair, const std::vector<std::byte*>& targets, Store store) {
    if (pair.pieces.finished()) return false;
    const Board::Wanted filled{pair.peer, &pair.flags->filled, pair.moved + 1};
    const bool moves = filled.there();
    if (moves) {
        pair.pieces.unpack(pair.half(), targets, store);
        pair.flags->drained.store(++pair.moved, std::memory_order_release);
        board.tell(pair.peer);
    } else {
        wanted_.push_back(filled);
    }
    return moves;
}

bool Windows::advance(Board& board, const std::vector<const std::byte*>& sources,
                      const std::vector<std::byte*>& targets, Store store) {
    bool moved = false;
    for (bool moves = true; moves;) {
        wanted_.clear();
        moves = fill(board, sources, targets, store);
        for (Pair& pair : incoming_) moves = drain(board, pair, targets, store) || moves;
        moved = moved || moves;
    }
    if (std::ranges::all_of(outgoing_, [](const Pair& pair) { return pair.pieces.finished(); })) {
        while (staying_->move(sources, targets, store)) {
        }
    }
    return moved;
}

}  // namespace reshard::mpi
