#include "src/execute/boxes/gather.hpp"

#include <numeric>

#include "src/base/at.hpp"
#include "src/base/try.hpp"
#include "src/execute/caller_array.hpp"

namespace reshard {

namespace {

// Memory that a run may use.
struct Room {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;
};

Index bytes_of(Index numbers) { return std::max<Index>(numbers, 1) * size_of(DType::i64); }

Index sum(const std::vector<Index>& lengths) { return std::accumulate(lengths.begin(), lengths.end(), Index{0}); }

// Room for the numbers of this rank and of all ranks.
Result<Room> allocate(Index own, Index all, Backend& backend) {
    Room room;
    RESHARD_ASSIGN(room.source, backend.allocate(bytes_of(own)));
    RESHARD_ASSIGN(room.target, backend.allocate(bytes_of(all)));
    return room;
}

// Copies the numbers of each rank, lengths[rank] of them, behind each other on every rank.
Result<std::vector<Index>> gather_known(std::span<const Index> own, const std::vector<Index>& lengths, const Room& room,
                                        Backend& backend) {
    const Index rank = backend.rank();
    const Index all = sum(lengths);
    Schedule schedule;
    schedule.rank = rank;
    Box mine;
    Index first = 0;
    for (Index peer = 0; peer < backend.size(); ++peer) {
        const Interval part{first, first + lengths[at(peer)]};
        first = part.end;
        if (peer == rank) mine = {part};
        if (part.size() > 0) schedule.receives.push_back({peer, {part}});
    }
    for (Index peer = 0; peer < backend.size() && !own.empty(); ++peer)
        if (peer != rank) schedule.sends.push_back({peer, mine});
    schedule.source_tile = as_tile(mine);
    schedule.target_tile = tile_of_shape({all});
    Slot from{BufferId::source, 0, schedule.source_tile, {0, {1}}};
    Slot to{BufferId::target, 0, schedule.target_tile, {0, {1}}};
    RankPlan plan = one_step(DType::i64, std::move(schedule), std::move(from), std::move(to));
    plan.source_bytes = bytes_of(std::ssize(own));
    plan.target_bytes = bytes_of(all);

    RESHARD_CHECK(backend.put(std::as_bytes(own), room.source->bytes().first(own.size_bytes())));
    const Buffers buffers{room.source->bytes(), room.target->bytes(), {}};
    RESHARD_TRY(const auto& prepared, backend.prepare({std::move(plan)}));
    RESHARD_TRY(const auto& bound, prepared->bind(std::span(&buffers, 1)));
    RESHARD_TRY(const auto& ticket, bound->start());
    RESHARD_CHECK(ticket->wait());
    std::vector<Index> gathered(at(all));
    const auto memory = std::as_writable_bytes(std::span(gathered));
    RESHARD_CHECK(backend.get(room.target->bytes().first(memory.size()), memory));
    return gathered;
}

}  // namespace

Result<std::vector<std::vector<Index>>> gather(std::span<const Index> own, Backend& backend) {
    const Index length = std::ssize(own);
    const std::vector<Index> ones(at(backend.size()), 1);
    RESHARD_TRY(const auto& small, allocate(1, backend.size(), backend));
    RESHARD_TRY(const auto& lengths, gather_known(std::span(&length, 1), ones, small, backend));
    const auto room = allocate(length, sum(lengths), backend);
    // A rank without memory tells the others, which would wait for it otherwise.
    RESHARD_CHECK(backend.agree(room.map([](const Room&) { return std::uint64_t{0}; })));
    RESHARD_TRY(const auto& numbers, gather_known(own, lengths, *room, backend));
    std::vector<std::vector<Index>> by_rank;
    auto next = numbers.begin();
    for (const Index count : lengths) {
        by_rank.emplace_back(next, next + count);
        next += count;
    }
    return by_rank;
}

}  // namespace reshard
