#include "backends/mpi/shm/bounce_buffers.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "backends/mpi/base/agree.hpp"
#include "src/base/cache_line.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr Index staying_bytes = Index{64} << 10;  // the largest piece of a part that stays

std::vector<PeerRegion> parts_of(const std::vector<PeerRegion>& parts, std::size_t peer) {
    std::vector<PeerRegion> with_peer;
    std::ranges::copy_if(parts, std::back_inserter(with_peer),
                         [&](const PeerRegion& part) { return part.peer == peer; });
    return with_peer;
}

// The range in an array's source that a part for a peer spans.
struct Stretch {
    std::size_t array;
    Index begin;
    Index end;
};

std::vector<Stretch> stretches_of(const std::vector<PeerRegion>& parts) {
    std::vector<Stretch> stretches;
    for (const PeerRegion& part : parts) {
        Index end = part.source.offset_bytes + part.source.element_bytes;
        for (std::size_t k = 0; k < part.source.extents.size(); ++k) {
            end += (part.source.extents[k] - 1) * part.source.strides_bytes[k];
        }
        stretches.push_back({part.array, part.source.offset_bytes, end});
    }
    return stretches;
}

bool side_by_side(const std::vector<Stretch>& some, const std::vector<Stretch>& others) {
    return std::ranges::any_of(some, [&](const Stretch& a) {
        return std::ranges::any_of(
            others, [&](const Stretch& b) { return a.array == b.array && a.begin < b.end && b.begin < a.end; });
    });
}

// Groups the numbers of stretches that lie side by side, directly or through others.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<std::vector<Stretch>>& all) {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<std::size_t> own{i};
        std::erase_if(groups, [&](const std::vector<std::size_t>& group) {
            const bool joins =
                std::ranges::any_of(group, [&](std::size_t member) { return side_by_side(all[member], all[i]); });
            if (joins) own.insert(own.end(), group.begin(), group.end());
            return joins;
        });
        groups.push_back(std::move(own));
    }
    return groups;
}

std::vector<Index> bytes_by_peer(const std::vector<PeerRegion>& parts, std::size_t ranks) {
    std::vector<Index> bytes(ranks);
    for (const PeerRegion& part : parts) bytes[part.peer] += sent_bytes(part);
    return bytes;
}

}  // namespace

std::vector<BounceSlot> deal_buffer(const std::vector<Index>& incoming, Index bounce_bytes) {
    const Index all = std::accumulate(incoming.begin(), incoming.end(), Index{0});
    const auto senders = static_cast<Index>(std::ranges::count_if(incoming, [](Index bytes) { return bytes > 0; }));
    Index offset = senders * static_cast<Index>(sizeof(SlotFlags));
    const Index halves = std::min(std::max<Index>(bounce_bytes - offset, 0), 2 * all);
    std::vector<BounceSlot> slots(incoming.size());
    Index flags = 0;
    for (std::size_t i = 0; i < incoming.size(); ++i) {
        if (incoming[i] == 0) continue;
        // In proportion, without a product that overflows 64 bits.
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

Store PackStores::now() const {
    const bool other = measured() && turns_left_ > samples;
    return other == (kept_ == Store::cached) ? Store::streaming : Store::cached;
}

void PackStores::end_turn(double seconds) {
    if (measured()) {
        double& least = least_[static_cast<std::size_t>(now())];
        least = std::min(least, seconds);
    }
    if (--turns_left_ > 0) return;
    const auto [cached, streaming] = std::exchange(least_, {never, never});
    const Store before = kept_;
    if (measures_) kept_ = cached < longer * streaming ? Store::cached : Store::streaming;
    turns_left_ = cycle_ = kept_ == before ? std::min(2 * cycle_, longest) : shortest;
}

Result<void> BounceBuffers::make(MPI_Comm communicator, Signals& signals, Arena& arena, const PeerRegions& parts,
                                 Index bounce_bytes, const PackStores& stores) {
    stores_ = stores;
    const auto ranks = static_cast<std::size_t>(size_of_communicator(communicator));
    const auto rank = static_cast<std::size_t>(rank_of(communicator));
    const std::vector<BounceSlot> slots = deal_buffer(bytes_by_peer(parts.receives, ranks), bounce_bytes);
    RESHARD_TRY(const auto& granted, exchanged(communicator, slots));  // in the peers' bounce buffers
    Index bytes = 0;
    for (const BounceSlot& slot : slots) {
        bytes = std::max(bytes, slot.half_bytes > 0 ? slot.offset + 2 * slot.half_bytes : 0);
    }
    const auto taken = parts.receives.empty() ? Address{} : signals.take(bytes);
    const std::span<std::byte> own = signals.taken();
    std::ranges::fill(own.first(std::min(own.size(), ranks * sizeof(SlotFlags))), std::byte{0});
    RESHARD_TRY(const auto& places, gathered(communicator, taken.value_or(Address{})));
    Result<void> made = taken.map([](const Address&) {});
    const auto pair_in = [&](std::size_t peer, const std::vector<PeerRegion>& some, const BounceSlot& slot,
                             std::byte* start, BouncePieces::Side side) {
        return Pair{peer, BouncePieces(parts_of(some, peer), slot.half_bytes, side),
                    reinterpret_cast<SlotFlags*>(start + slot.flags), start + slot.offset, slot.half_bytes};
    };
    staying_.emplace(parts.own, staying_bytes, BouncePieces::Side::both);
    std::vector<std::vector<Stretch>> stretches;
    // Each rank begins with the next rank, so that not all begin with the first.
    for (std::size_t k = 1; k < ranks && made; ++k) {
        const std::size_t peer = (rank + k) % ranks;
        if (slots[peer].half_bytes > 0) {
            incoming_.push_back(pair_in(peer, parts.receives, slots[peer], own.data(), BouncePieces::Side::receiver));
        }
        if (granted[peer].half_bytes == 0) continue;
        auto reached = arena.reach(places[peer], views_);
        if (!reached) {
            made = tl::unexpected(reached.error());
            break;
        }
        outgoing_.push_back(pair_in(peer, parts.sends, granted[peer], *reached, BouncePieces::Side::sender));
        const bool deals = outgoing_.back().pieces.in_rows();
        stretches.push_back(deals ? stretches_of(parts_of(parts.sends, peer)) : std::vector<Stretch>());
    }
    groups_ = groups_of(stretches);
    wanted_.reserve(outgoing_.size() + incoming_.size());
    return all_succeeded(communicator, made, 1);
}

void BounceBuffers::restart(const std::vector<std::vector<char>>& to_stage,
                            const std::vector<std::vector<char>>& from_stage, const std::vector<char>& own) {
    staying_->restart(own);
    for (Pair& pair : outgoing_) pair.pieces.restart(to_stage[pair.peer]);
    for (Pair& pair : incoming_) pair.pieces.restart(from_stage[pair.peer]);
}

// Opens a half for each pair of the groups whose pairs all have room, at most two halves ahead of the receivers.
std::size_t BounceBuffers::open_halves() {
    std::size_t open = 0;
    for (const auto& group : groups_) {
        const std::size_t before = wanted_.size();
        for (const std::size_t i : group) {
            const Pair& pair = outgoing_[i];
            const Signals::Wanted room{pair.peer, &pair.flags->drained, pair.moved < 1 ? 0 : pair.moved - 1};
            if (!pair.pieces.finished() && !room.there()) wanted_.push_back(room);
        }
        for (const std::size_t i : group) {
            Pair& pair = outgoing_[i];
            const bool opens = wanted_.size() == before && !pair.pieces.finished();
            pair.packed_bytes = opens ? 0 : -1;
            open += opens ? 1 : 0;
        }
    }
    return open;
}

// Open halves and the parts that stay on this rank get one piece each in turn: the source is read once, in order.
void BounceBuffers::fill(Signals& signals, const std::vector<const std::byte*>& sources,
                         const std::vector<std::byte*>& targets, Store store, std::size_t open) {
    while (open > 0) {
        Index bytes = 0;
        for (Pair& pair : outgoing_) {
            const Index before = pair.packed_bytes;
            if (before < 0) continue;
            if (pair.pieces.pack(pair.half(), pair.packed_bytes, sources, copies_)) {
                bytes += pair.packed_bytes - before;
                continue;
            }
            pair.packed_bytes = -1;
            --open;
            store_fence();
            pair.flags->filled.store(++pair.moved, std::memory_order_release);
            signals.wake(pair.peer);
        }
        if (bytes > 0) run_copies(bytes);
        staying_->move(sources, targets, store);
    }
}

void BounceBuffers::run_copies(Index bytes) {
    using Clock = std::chrono::steady_clock;
    const bool measured = stores_.measured();
    const auto begin = measured ? Clock::now() : Clock::time_point();
    copies_.run(stores_.now());
    const std::chrono::duration<double> took = measured ? Clock::now() - begin : Clock::duration();
    stores_.end_turn(took.count() / static_cast<double>(bytes));
}

bool BounceBuffers::drain(Signals& signals, Pair& pair, const std::vector<std::byte*>& targets, Store store) {
    if (pair.pieces.finished()) return false;
    const Signals::Wanted filled{pair.peer, &pair.flags->filled, pair.moved + 1};
    const bool moves = filled.there();
    if (moves) {
        pair.pieces.unpack(pair.half(), targets, store);
        pair.flags->drained.store(++pair.moved, std::memory_order_release);
        signals.wake(pair.peer);
    } else {
        wanted_.push_back(filled);
    }
    return moves;
}

bool BounceBuffers::advance(Signals& signals, const std::vector<const std::byte*>& sources,
                            const std::vector<std::byte*>& targets, Store store) {
    bool moved = false;
    for (bool moves = true; moves;) {
        wanted_.clear();
        const std::size_t open = open_halves();
        moves = open > 0;
        fill(signals, sources, targets, store, open);
        for (Pair& pair : incoming_) moves = drain(signals, pair, targets, store) || moves;
        moved = moved || moves;
    }
    if (std::ranges::all_of(outgoing_, [](const Pair& pair) { return pair.pieces.finished(); })) {
        while (staying_->move(sources, targets, store)) {
        }
    }
    return moved;
}

}  // namespace reshard::mpi
