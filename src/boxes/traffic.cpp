// The bytes and the price of an exchange of boxes.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/at.hpp"
#include "src/base/try.hpp"
#include "src/boxes/routes.hpp"
#include "src/price/level_price.hpp"

namespace reshard {

namespace {

Index elements_of(const std::vector<Box>& boxes) {
    Index elements = 0;
    for (const Box& box : boxes) elements = saturating_add(elements, count(box));
    return elements;
}

// The loads of one level: elements by device, or by block if a block shares its connection.
class LevelLoad {
public:
    LevelLoad(std::size_t ranks, Index block) : block_(block), sent_(ranks), received_(ranks) {}

    void add(Index from, Index to, Index elements) {
        sent_[at(from / block_)] += elements;
        received_[at(to / block_)] += elements;
        most_ = std::max({most_, sent_[at(from / block_)], received_[at(to / block_)]});
        pair_ = std::max(pair_, elements);
    }
    void count_messages(Index messages) { messages_ = std::max(messages_, messages); }
    [[nodiscard]] Index picoseconds(const Level& level, Index element_bytes) const {
        return level_picoseconds(level, most_, pair_, messages_, element_bytes);
    }

private:
    Index block_;
    std::vector<Index> sent_;
    std::vector<Index> received_;
    Index most_ = 0;
    Index pair_ = 0;
    Index messages_ = 0;
};

// Elements that a rank receives from each peer, by ascending peer; itself for local copies.
std::map<Index, Index> received_by_peer(const BoxRoutes& routes, Index rank) {
    std::map<Index, Index> elements;
    for (const BoxMove& move : routes.receives(rank)) elements[move.peer] += count(move.part);
    return elements;
}

}  // namespace

Result<void> validate(const BoxTable& table) {
    for (Index rank = 0; rank < std::ssize(table.ranks); ++rank)
        RESHARD_CHECK(check_within(table.shape, table.ranks[at(rank)], rank));
    const BoxRoutes routes(table);
    for (Index rank = 0; rank < std::ssize(table.ranks); ++rank) RESHARD_CHECK(routes.check(rank));
    return {};
}

std::vector<BoxTraffic> traffic_of(const BoxTable& table) {
    const BoxRoutes routes(table);
    const Index element_bytes = size_of(table.dtype);
    std::vector<BoxTraffic> all(table.ranks.size());
    for (Index rank = 0; rank < std::ssize(table.ranks); ++rank) {
        BoxTraffic& own = all[at(rank)];
        Index fresh = 0;
        for (const auto& [peer, elements] : received_by_peer(routes, rank)) {
            fresh += elements;
            if (peer == rank) continue;
            own.received_bytes += elements * element_bytes;
            ++own.senders;
            all[at(peer)].sent_bytes += elements * element_bytes;
            ++all[at(peer)].receivers;
        }
        own.copied_bytes = saturating_multiply(elements_of(table.ranks[at(rank)].want), element_bytes);
        own.copied_bytes -= own.received_bytes;
    }
    return all;
}

Index exchange_picoseconds(const BoxTable& table, const Machine& machine) {
    const BoxRoutes routes(table);
    const Index element_bytes = size_of(table.dtype);
    const Network network = network_of(machine, std::ssize(table.ranks));
    std::vector<LevelLoad> loads;
    for (std::size_t i = 0; i < machine.levels.size(); ++i)
        loads.emplace_back(table.ranks.size(), i > 0 && machine.levels[i].shared ? machine.levels[i - 1].devices : 1);
    Index copied = 0;
    for (Index rank = 0; rank < std::ssize(table.ranks); ++rank) {
        std::vector<Index> messages(loads.size());
        for (const auto& [peer, elements] : received_by_peer(routes, rank)) {
            if (peer == rank) continue;
            const std::size_t level = std::min(distance(network, peer, rank), loads.size() - 1);
            loads[level].add(peer, rank, elements);
            ++messages[level];
        }
        for (std::size_t i = 0; i < loads.size(); ++i) loads[i].count_messages(messages[i]);
        copied = std::max(copied, saturating_multiply(elements_of(table.ranks[at(rank)].want), element_bytes));
    }
    Index time = transfer_picoseconds(copied, machine.copy_bytes_per_second);
    for (std::size_t i = 0; i < loads.size(); ++i)
        time = saturating_add(time, loads[i].picoseconds(machine.levels[i], element_bytes));
    return time;
}

std::string describe(const BoxTable& table, const Machine& machine) {
    Index have = 0;
    Index want = 0;
    for (const RankBoxes& rank : table.ranks) {
        have += std::ssize(rank.have);
        want += std::ssize(rank.want);
    }
    Index moved = 0;
    Index busiest = 0;
    const std::vector<BoxTraffic> traffic = traffic_of(table);
    for (Index rank = 0; rank < std::ssize(traffic); ++rank) {
        moved += traffic[at(rank)].received_bytes;
        if (traffic[at(rank)].received_bytes > traffic[at(busiest)].received_bytes) busiest = rank;
    }
    std::string text = fmt::format("{} boxes are owned and {} wanted by {} ranks; {} move in one round\n", have, want,
                                   table.ranks.size(), format_bytes(moved));
    if (traffic.empty()) return text;
    const BoxTraffic& most = traffic[at(busiest)];
    return text + fmt::format(
                      "rank {} receives most: {} from {} ranks, the least that any protocol brings it; about "
                      "{:.4g} us on {}\n",
                      busiest, format_bytes(most.received_bytes), most.senders,
                      static_cast<double>(exchange_picoseconds(table, machine)) / 1e6, machine.name);
}

}  // namespace reshard
