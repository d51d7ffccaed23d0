#include "support/movement.hpp"

#include <map>
#include <set>

namespace reshard::test {

namespace {

/// All index vectors of a box in row-major order.
std::vector<std::vector<Index>> points(const Box& box) {
    std::vector<std::vector<Index>> all(1);
    for (const Interval& side : box) {
        std::vector<std::vector<Index>> longer;
        longer.reserve(all.size() * static_cast<std::size_t>(side.end - side.begin));
        for (const auto& prefix : all)
            for (Index i = side.begin; i < side.end; ++i) {
                longer.push_back(prefix);
                longer.back().push_back(i);
            }
        all = std::move(longer);
    }
    return all;
}

Box whole(const std::vector<Index>& shape) {
    Box box;
    for (const Index extent : shape) box.push_back({0, extent});
    return box;
}

/// The row-major place of a global point in a tile; -1 outside the tile.
Index place(const Box& tile, const std::vector<Index>& point) {
    Index offset = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        if (point[i] < tile[i].begin || point[i] >= tile[i].end) return -1;
        offset = offset * (tile[i].end - tile[i].begin) + point[i] - tile[i].begin;
    }
    return offset;
}

std::int64_t noise(Index element, Index summand) {
    auto x = static_cast<std::uint64_t>(element) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(summand + 1);
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9U;
    return static_cast<std::int64_t>((x ^ (x >> 29)) >> 20);
}

std::int64_t combined(Combine combine, std::int64_t a, std::int64_t b) {
    switch (combine) {
        case Combine::sum:
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        case Combine::prod:
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        case Combine::max:
            return a > b ? a : b;
        case Combine::min:
            return a > b ? b : a;
        case Combine::copy:
            break;
    }
    return b;
}

std::int64_t neutral(Combine combine) {
    if (combine == Combine::max) return INT64_MIN;
    if (combine == Combine::min) return INT64_MAX;
    return combine == Combine::prod ? 1 : 0;
}

/// Summand number `which` of a value that has `parts` summands.
std::int64_t part_of(Combine combine, std::int64_t value, Index element, Index which, Index parts) {
    if (combine == Combine::sum) {
        if (which != parts - 1) return noise(element, which);
        for (Index s = 0; s + 1 < parts; ++s) value -= noise(element, s);
        return value;
    }
    if (combine == Combine::prod) {
        const auto sign = [&](Index s) { return noise(element, s) % 2 == 0 ? 1 : -1; };
        if (which != parts - 1) return sign(which);
        for (Index s = 0; s + 1 < parts; ++s) value *= sign(s);
        return value;
    }
    if (which == element % parts) return value;
    const std::int64_t away = noise(element, which) % 1000;
    return combine == Combine::max ? value - std::abs(away) : value + std::abs(away);
}

std::string at(std::size_t device, const std::vector<Index>& point) {
    std::string text = "device " + std::to_string(device) + ", element (";
    for (const Index i : point) text += std::to_string(i) + ",";
    return text + ")";
}

std::string box_text(const Box& box) {
    std::string text;
    for (const Interval& side : box) text += "[" + std::to_string(side.begin) + "," + std::to_string(side.end) + ")";
    return text;
}

}  // namespace

Values make_array(const std::vector<Index>& shape) {
    Values array(static_cast<std::size_t>(elements(whole(shape))));
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = 1'000'003 + static_cast<std::int64_t>(i) * 7;
    return array;
}

Tiles spread(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array) {
    const Index parts = summands(held);
    const Box all = whole(shape);
    Tiles tiles;
    for (const Holding& holding : held) {
        Values tile;
        for (const auto& point : points(holding.tile)) {
            const Index element = place(all, point);
            const std::int64_t value = array[static_cast<std::size_t>(element)];
            tile.push_back(parts == 1 ? value : part_of(holding.combine, value, element, holding.summand, parts));
        }
        tiles.push_back(std::move(tile));
    }
    return tiles;
}

std::string fault(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array,
                  const Tiles& tiles) {
    if (tiles.size() != held.size()) return "tiles for " + std::to_string(tiles.size()) + " devices";
    const auto parts = static_cast<std::size_t>(summands(held));
    const Box all = whole(shape);
    std::vector<std::map<std::size_t, std::int64_t>> known(parts);  // per summand: element -> value
    for (std::size_t device = 0; device < held.size(); ++device) {
        const auto inside = points(held[device].tile);
        if (tiles[device].size() != inside.size())
            return "device " + std::to_string(device) + " holds " + std::to_string(tiles[device].size()) +
                   " elements instead of " + std::to_string(inside.size());
        auto& values = known[static_cast<std::size_t>(held[device].summand)];
        for (std::size_t i = 0; i < inside.size(); ++i) {
            const auto element = static_cast<std::size_t>(place(all, inside[i]));
            if (parts == 1 && tiles[device][i] != array[element]) return at(device, inside[i]) + " is wrong";
            if (parts == 1) continue;
            const auto [entry, fresh] = values.emplace(element, tiles[device][i]);
            if (!fresh && entry->second != tiles[device][i]) return at(device, inside[i]) + " differs from its replica";
        }
    }
    if (parts == 1) return "";
    for (std::size_t element = 0; element < array.size(); ++element) {
        std::int64_t total = neutral(held[0].combine);
        for (const auto& values : known) {
            const auto entry = values.find(element);
            if (entry == values.end()) return "element " + std::to_string(element) + " lacks a summand";
            total = combined(held[0].combine, total, entry->second);
        }
        if (total != array[element])
            return "the summands of element " + std::to_string(element) + " do not combine to it";
    }
    return "";
}

Delivery deliver(const std::vector<Holding>& before, const std::vector<Holding>& after,
                 const std::vector<Schedule>& schedules, const Tiles& tiles) {
    Delivery done;
    const std::size_t ranks = schedules.size();
    done.received.assign(ranks, 0);
    done.sent.assign(ranks, 0);
    done.peers.assign(ranks, 0);
    const auto stop = [&](std::string what) {
        if (done.fault.empty()) done.fault = std::move(what);
    };
    if (ranks != before.size()) stop("schedules for " + std::to_string(ranks) + " ranks");
    // The wire: boxes in order, for each (sender, receiver).
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Box>> wire;
    for (std::size_t rank = 0; rank < ranks && done.fault.empty(); ++rank)
        for (const Transfer& send : schedules[rank].sends) {
            const auto peer = static_cast<std::size_t>(send.peer);
            if (send.peer < 0 || peer >= ranks) stop("rank " + std::to_string(rank) + " sends to nobody");
            if (peer == rank) stop("rank " + std::to_string(rank) + " sends to itself");
            wire[{rank, peer}].push_back(send.box);
            done.sent[rank] += elements(send.box);
        }
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> next;
    for (std::size_t rank = 0; rank < ranks && done.fault.empty(); ++rank) {
        const Schedule& mine = schedules[rank];
        const Box& target = after[rank].tile;
        Values values(static_cast<std::size_t>(elements(target)));
        std::vector<int> written(values.size(), 0);
        std::vector<bool> filled(values.size(), false);  // before the receives, which may write the same elements
        for (const Box& box : mine.fills)
            for (const auto& point : points(box)) {
                const Index to = place(target, point);
                if (to < 0) return stop("a fill outside the target tile of rank " + std::to_string(rank)), done;
                filled[static_cast<std::size_t>(to)] = true;
                values[static_cast<std::size_t>(to)] = neutral(mine.identity);
            }
        std::set<std::size_t> peers;
        for (const Transfer& receive : mine.receives) {
            const auto peer = static_cast<std::size_t>(receive.peer);
            if (receive.peer < 0 || peer >= ranks) return stop("rank " + std::to_string(rank) + " hears nobody"), done;
            if (peer != rank) {
                const auto& boxes = wire[{peer, rank}];
                std::size_t& k = next[{peer, rank}];
                if (k >= boxes.size() || boxes[k] != receive.box)
                    return stop("rank " + std::to_string(rank) + " waits for " + box_text(receive.box) + " of rank " +
                                std::to_string(peer) + " in vain"),
                           done;
                ++k;
                done.received[rank] += elements(receive.box);
                if (elements(receive.box) > 0) peers.insert(peer);
            }
            for (const auto& point : points(receive.box)) {
                const Index from = place(before[peer].tile, point);
                const Index to = place(target, point);
                if (from < 0 || to < 0)
                    return stop("rank " + std::to_string(rank) + ": " + at(peer, point) + " is not there"), done;
                const std::int64_t value = tiles[peer][static_cast<std::size_t>(from)];
                const auto slot = static_cast<std::size_t>(to);
                values[slot] = written[slot] > 0 ? combined(mine.combine, values[slot], value) : value;
                ++written[slot];
            }
        }
        for (std::size_t i = 0; i < written.size(); ++i)
            if ((written[i] == 0 && !filled[i]) || (mine.combine == Combine::copy && written[i] > 1))
                return stop("rank " + std::to_string(rank) + " writes element " + std::to_string(i) + " " +
                            std::to_string(written[i]) + " times"),
                       done;
        done.peers[rank] = static_cast<Index>(peers.size());
        done.tiles.push_back(std::move(values));
    }
    for (const auto& [pair, boxes] : wire)
        if (done.fault.empty() && next[pair] != boxes.size())
            stop("rank " + std::to_string(pair.first) + " sends to " + std::to_string(pair.second) + " unheard");
    return done;
}

std::vector<Schedule> all_schedules(const Layout& before, const Step& step) {
    std::vector<Schedule> all;
    for (Index rank = 0; rank < device_count(before); ++rank) all.push_back(schedule(before, step, rank));
    return all;
}

}  // namespace reshard::test
