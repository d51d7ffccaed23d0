#include "src/execute/boxes/lower_boxes.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "src/base/at.hpp"
#include "src/base/odometer.hpp"
#include "src/base/try.hpp"
#include "src/execute/caller_array.hpp"

namespace reshard {

namespace {

// The boxes of one rank in one buffer.
struct Placed {
    std::vector<PlacedBox> boxes;
    Index elements = 0;
    Index bytes = 0;  // least size of the buffer
};

Result<Placed> place(const std::vector<Box>& boxes, const std::vector<Storage>& storages, Index element_bytes,
                     std::string_view what) {
    if (!storages.empty() && storages.size() != boxes.size())
        return fail(Code::mismatch,
                    fmt::format("{} {} boxes were given {} storages", boxes.size(), what, storages.size()));
    Placed placed;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Tile tile = as_tile(boxes[i]);
        Storage storage = row_major(tile);
        storage.offset = placed.elements;
        if (!storages.empty()) storage = storages[i];
        RESHARD_TRY(const Index bytes, bytes_needed(storage, tile, element_bytes, fmt::format("{} box {}", what, i)));
        placed.bytes = std::max(placed.bytes, bytes);
        placed.elements = saturating_add(placed.elements, count(boxes[i]));
        placed.boxes.push_back({boxes[i], std::move(storage)});
    }
    if (saturating_multiply(placed.elements, element_bytes) == index_max)
        return fail(Code::overflow, fmt::format("the {} boxes have more bytes than 64 bits can count", what));
    return placed;
}

// The places from the first element of a box to its last.
Interval reach(const PlacedBox& placed) {
    const auto extent = extent_of(placed.storage, as_tile(placed.box));
    return {placed.storage.offset, extent.value_or(index_max)};
}

bool reaches_overlap(std::vector<Interval> reaches) {
    std::ranges::sort(reaches, {}, &Interval::begin);
    for (std::size_t i = 1; i < reaches.size(); ++i)
        if (reaches[i].begin < reaches[i - 1].end) return true;
    return false;
}

// Fails if two elements of these boxes share a place. Boxes that interleave are looked at element by element.
Result<void> check_apart_places(const std::vector<PlacedBox>& boxes) {
    std::vector<Interval> reaches;
    for (const PlacedBox& one : boxes) {
        if (count(one.box) == 0) continue;
        RESHARD_CHECK(check_distinct(one.storage, extents(as_tile(one.box))));
        reaches.push_back(reach(one));
    }
    if (!reaches_overlap(reaches)) return {};
    std::vector<bool> taken(at(std::ranges::max(reaches, {}, &Interval::end).end));
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (count(boxes[i].box) == 0) continue;
        const Storage& storage = boxes[i].storage;
        RESHARD_CHECK(for_each_place(extents(as_tile(boxes[i].box)), [&](std::span<const Index> indices) {
            Index element = storage.offset;
            for (std::size_t k = 0; k < indices.size(); ++k) element += indices[k] * storage.strides[k];
            if (taken[at(element)])
                return Result<void>(fail(Code::mismatch, fmt::format("wanted box {} writes element {} of the buffer, "
                                                                     "which an earlier box writes, too",
                                                                     i, element)));
            taken[at(element)] = true;
            return Result<void>();
        }));
    }
    return {};
}

// A part has one set of indices for both its ends. So boxes get two leading dimensions: the number of the sender's box
// and the number of the receiver's box.
Box numbered(Interval from, Interval to, const Box& part) {
    Box box = {from, to};
    box.insert(box.end(), part.begin(), part.end());
    return box;
}

Transfer transfer(const BoxMove& move) {
    return {move.peer, numbered({move.from, move.from + 1}, {move.to, move.to + 1}, move.part)};
}

enum class End { sender, receiver };

// The boxes of one end. `others` is the most boxes that a rank has at the other end.
Slot slot_of(BufferId buffer, const Placed& placed, End end, Index others, const std::vector<Index>& shape) {
    const Index own = std::ssize(placed.boxes);
    const auto box_of = [&](Interval mine, const Box& part) {
        const Interval theirs{0, others};
        return end == End::sender ? numbered(mine, theirs, part) : numbered(theirs, mine, part);
    };
    Slot slot;
    slot.buffer = buffer;
    slot.tile = as_tile(box_of({0, own}, as_box(tile_of_shape(shape))));
    slot.numbered_by = end == End::sender ? 0 : 1;
    for (Index i = 0; i < own; ++i) {
        const PlacedBox& one = placed.boxes[at(i)];
        PlacedBox& made = slot.boxes.emplace_back();
        made.box = box_of({i, i + 1}, one.box);
        made.storage = {one.storage.offset, {0, 0}};
        made.storage.strides.insert(made.storage.strides.end(), one.storage.strides.begin(), one.storage.strides.end());
    }
    return slot;
}

Index most(const BoxTable& table, std::vector<Box> RankBoxes::*boxes) {
    Index most = 1;
    for (const RankBoxes& rank : table.ranks) most = std::max(most, std::ssize(rank.*boxes));
    return most;
}

// True if several boxes of some rank want one element.
bool any_repeats(const BoxTable& table) {
    return std::ranges::any_of(table.ranks, [&](const RankBoxes& rank) {
        return rank.want.size() > 1 && !wants_of(rank.want, table.shape.size(), 0).repeats.empty();
    });
}

Schedule exchange(const BoxRoutes& routes, Index rank, const Placed& have, const Placed& want) {
    Schedule schedule{StepKind::exchange,
                      rank,
                      tile_of_shape({have.elements}),
                      tile_of_shape({want.elements}),
                      Combine::copy,
                      {},
                      {},
                      {},
                      {}};
    for (const BoxMove& move : routes.receives(rank)) schedule.receives.push_back(transfer(move));
    for (const BoxMove& move : routes.sends(rank)) schedule.sends.push_back(transfer(move));
    return schedule;
}

BoxTraffic traffic_of(const Schedule& schedule, Index want_bytes, Index element_bytes) {
    BoxTraffic traffic;
    std::set<Index> senders;
    std::set<Index> receivers;
    for (const Transfer& one : schedule.receives) {
        if (one.peer == schedule.rank) continue;
        traffic.received_bytes += count(one.box) * element_bytes;
        senders.insert(one.peer);
    }
    for (const Transfer& one : schedule.sends) {
        traffic.sent_bytes += count(one.box) * element_bytes;
        receivers.insert(one.peer);
    }
    traffic.copied_bytes = want_bytes - traffic.received_bytes;
    traffic.senders = std::ssize(senders);
    traffic.receivers = std::ssize(receivers);
    return traffic;
}

}  // namespace

Result<LoweredBoxes> lower_boxes(const BoxTable& table, const BoxRoutes& routes, Index rank,
                                 const BoxStorages& storages) {
    const Index element_bytes = size_of(table.dtype);
    const RankBoxes& own = table.ranks[at(rank)];
    RESHARD_TRY(const auto& have, place(own.have, storages.have, element_bytes, "owned"));
    RESHARD_TRY(const auto& want, place(own.want, storages.want, element_bytes, "wanted"));
    RESHARD_CHECK(check_apart_places(want.boxes));
    const Index have_most = most(table, &RankBoxes::have);
    const Index want_most = most(table, &RankBoxes::want);

    LoweredBoxes lowered;
    lowered.have_bytes = have.bytes;
    lowered.want_bytes = want.bytes;
    Schedule schedule = exchange(routes, rank, have, want);
    lowered.traffic = traffic_of(schedule, want.elements * element_bytes, element_bytes);
    lowered.rounds.push_back(one_step(table.dtype, std::move(schedule),
                                      slot_of(BufferId::source, have, End::sender, want_most, table.shape),
                                      slot_of(BufferId::target, want, End::receiver, have_most, table.shape)));
    if (any_repeats(table)) {
        const Tile all = tile_of_shape({want.elements});
        Schedule copies{StepKind::exchange, rank, all, all, Combine::copy, {}, {}, {}, {}};
        for (const BoxMove& move : wants_of(own.want, table.shape.size(), rank).repeats)
            copies.receives.push_back(transfer(move));
        lowered.rounds.push_back(one_step(table.dtype, std::move(copies),
                                          slot_of(BufferId::source, want, End::sender, want_most, table.shape),
                                          slot_of(BufferId::target, want, End::receiver, want_most, table.shape)));
    }
    for (RankPlan& round : lowered.rounds) {
        round.source_bytes = &round == lowered.rounds.data() ? lowered.have_bytes : lowered.want_bytes;
        round.target_bytes = lowered.want_bytes;
    }
    return lowered;
}

}  // namespace reshard
