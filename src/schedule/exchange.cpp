#include "src/schedule/exchange.hpp"

#include <algorithm>

#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

void append(std::vector<PartTransfer>& transfers, Index peer, std::vector<Tile> parts) {
    for (Tile& part : parts) transfers.push_back({peer, std::move(part)});
}

std::vector<Transfer> in_boxes(const std::vector<PartTransfer>& parts) {
    std::vector<Transfer> transfers;
    for (const auto& [peer, part] : parts)
        for (Box& box : boxes_of(part)) transfers.push_back({peer, std::move(box)});
    return transfers;
}

}  // namespace

std::vector<PartTransfer> exchange_received_parts(const Layout& before, const Layout& after, Index rank,
                                                  const Network& network, std::span<const Index> lost) {
    std::vector<PartTransfer> receives;
    if (!position_of(after.mesh, rank)) return receives;
    const Tile wanted_tile = tile(after, rank);
    if (count(wanted_tile) == 0) return receives;
    const Routing routing(before, after, rank, network, lost);
    const Index wanted = summand(after, rank);
    for (const TileNumber& number : touched_tiles(before, wanted_tile)) {
        Tile piece = intersect(tile_of(before, number), wanted_tile);
        if (count(piece) == 0) continue;
        const std::vector<Index> holders = routing.holders_of(number, wanted);
        if (std::ranges::binary_search(holders, rank)) {
            receives.push_back({rank, std::move(piece)});
            continue;
        }
        for (const Share& share : routing.shares_of(number, wanted, holders))
            append(receives, share.holder, tiles_of_range(piece, share.begin, share.end));
    }
    return receives;
}

std::vector<PartTransfer> exchange_sent_parts(const Layout& before, const Layout& after, Index rank,
                                              const Network& network, std::span<const Index> lost) {
    std::vector<PartTransfer> sends;
    if (!position_of(before.mesh, rank) || std::ranges::binary_search(lost, rank)) return sends;
    const Tile held_tile = tile(before, rank);
    if (count(held_tile) == 0) return sends;
    const Routing routing(before, after, rank, network, lost);
    const TileNumber number = tile_number(before, rank);
    const Index held = summand(before, rank);
    for (const Stripes& stripes : routing.stripes_of(number, held, routing.holders_of(number, held))) {
        const auto mine = std::ranges::lower_bound(stripes.holders, rank);
        if (mine == stripes.holders.end() || *mine != rank) continue;
        for (const Demand& demand : stripes.demands) {
            const auto [begin, end] = stripes.served(demand, static_cast<std::size_t>(mine - stripes.holders.begin()));
            if (begin == end) continue;
            append(sends, demand.device, tiles_of_range(intersect(held_tile, tile(after, demand.device)), begin, end));
        }
    }
    std::ranges::stable_sort(sends, {}, &PartTransfer::peer);
    return sends;
}

std::vector<Transfer> exchange_receives(const Layout& before, const Layout& after, Index rank, const Network& network,
                                        std::span<const Index> lost) {
    return in_boxes(exchange_received_parts(before, after, rank, network, lost));
}

std::vector<Transfer> exchange_sends(const Layout& before, const Layout& after, Index rank, const Network& network,
                                     std::span<const Index> lost) {
    return in_boxes(exchange_sent_parts(before, after, rank, network, lost));
}

}  // namespace reshard
