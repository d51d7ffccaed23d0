// Counts what a step carries, transfer by transfer, by the plainest form of the stripe rule. Prices are compared with
// this if there would be too many schedules.
#include "properties/transfers.hpp"

#include <algorithm>
#include <tuple>

#include "reshard/planner/schedule.hpp"

namespace reshard::test {

namespace {

/// For each shard of one cut, the shards of the other cut with common indices, and how many.
using Common = std::vector<std::vector<std::pair<Index, Index>>>;

Common common(const Dim& before, const Dim& after) {
    Common found(static_cast<std::size_t>(shard_count(before)));
    const std::vector<Dim::Piece> held = pieces_of(before);
    const std::vector<Dim::Piece> wanted = pieces_of(after);
    Index begin = 0;
    for (std::size_t i = 0, j = 0; i < held.size() && j < wanted.size();) {
        const Index end = std::min(held[i].end, wanted[j].end);
        auto& list = found[static_cast<std::size_t>(held[i].shard)];
        const auto known = std::ranges::find(list, wanted[j].shard, &std::pair<Index, Index>::first);
        if (known != list.end())
            known->second += end - begin;
        else
            list.emplace_back(wanted[j].shard, end - begin);
        begin = end;
        if (held[i].end == end) ++i;
        if (wanted[j].end == end) ++j;
    }
    return found;
}

/// The devices by the number of their tile and of their team. Teams need nothing from each other.
struct Holders {
    Holders(const Layout& layout, const AtomList& team) : teams(combinations(team)) {
        for (const Dim& dim : layout.dims) tiles *= shard_count(dim);
        by_tile.resize(static_cast<std::size_t>(tiles * teams));
        for (Index position = 0; position < device_count(layout); ++position) {
            Index number = value_of(team, position);
            for (const Dim& dim : layout.dims) number = number * shard_count(dim) + value_of(dim.atoms, position);
            by_tile[static_cast<std::size_t>(number)].push_back(device_at(layout.mesh, position));
        }
        for (std::vector<Index>& devices : by_tile) std::ranges::sort(devices);
    }
    Index tiles = 1;
    Index teams = 1;
    std::vector<std::vector<Index>> by_tile;
};

struct Wish {
    std::size_t distance = 0;
    Index block = 0;
    Index device = 0;
    Index elements = 0;
};

/// The nearest holders share the wanted elements, laid end to end by device.
void serve(const Network& network, const std::vector<Index>& holders, std::vector<Wish> wishes, Ledger& ledger) {
    if (holders.size() == 1) {
        for (const Wish& wish : wishes) ledger.add(holders[0], wish.device, wish.elements);
        return;
    }
    const auto block_of = [&](std::size_t at, Index device) { return at < network.size() ? device / network[at] : 0; };
    for (Wish& wish : wishes) {
        wish.distance = network.size();
        for (const Index holder : holders)
            wish.distance = std::min(wish.distance, distance(network, holder, wish.device));
        wish.block = block_of(wish.distance, wish.device);
    }
    const auto group = [](const Wish& wish) { return std::tuple(wish.distance, wish.block); };
    std::ranges::sort(wishes, {}, [](const Wish& wish) { return std::tuple(wish.distance, wish.block, wish.device); });
    for (std::size_t first = 0, end = 0; first < wishes.size(); first = end) {
        Index total = 0;
        for (end = first; end < wishes.size() && group(wishes[end]) == group(wishes[first]); ++end)
            total += wishes[end].elements;
        std::vector<Index> near;
        for (const Index holder : holders)
            if (block_of(wishes[first].distance, holder) == wishes[first].block) near.push_back(holder);
        const Index part = ceil_divide(total, std::ssize(near));
        Index at = 0;
        for (std::size_t i = first; i < end; ++i)
            for (Index left = wishes[i].elements; left > 0;) {
                const Index taken = std::min(left, part - at % part);
                ledger.add(near[static_cast<std::size_t>(at / part)], wishes[i].device, taken);
                at += taken;
                left -= taken;
            }
    }
}

/// True if each block begins and ends where digits of the mesh and of both ends do.
bool blocks_are_digits(const Layout& before, const Layout& after, const Network& network) {
    if (network.empty()) return true;
    std::vector<Index> borders;
    for (const Axis& axis : before.mesh.axes) {
        for (Index& border : borders) border *= axis.size;
        borders.push_back(axis.size);
    }
    for (const Layout* end : {&before, &after}) {
        AtomList atoms = end->unreduced;
        for (const Dim& dim : end->dims) atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
        for (const Atom& atom : atoms) borders.insert(borders.end(), {atom.stride, atom.stride * atom.size});
    }
    for (const Index block : network)
        if (block < device_count(before)) borders.push_back(block);
    std::ranges::sort(borders);
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i] % borders[i - 1] != 0) return false;
    return before.mesh.devices.in_order();
}

/// Counts an exchange, source tile by source tile. False if there are too many transfers to count.
bool exchange(const Layout& before, const Layout& after, const Network& network, Index transfers_max, Ledger& ledger) {
    AtomList held_team = before.unreduced;
    AtomList wanted_team = after.unreduced;
    if (same_order(before.mesh, after.mesh) && blocks_are_digits(before, after, network))
        for (const Atom& atom : idle_atoms(before, after)) {
            held_team.push_back(atom);
            wanted_team.push_back(atom);
        }
    const Holders held(before, held_team);
    const Holders wanted(after, wanted_team);
    std::vector<Common> commons;
    Index transfers = device_count(after) / wanted.tiles;
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        commons.push_back(common(before.dims[i], after.dims[i]));
        Index pairs = 0;
        for (const auto& list : commons.back()) pairs += std::ssize(list);
        transfers *= pairs;
    }
    if (transfers > transfers_max) return false;
    for (std::size_t number = 0; number < held.by_tile.size(); ++number) {
        const std::vector<Index>& holders = held.by_tile[number];
        const auto team = static_cast<Index>(number) / held.tiles;
        // The numbers of the tiles that it meets, with elements.
        std::vector<std::pair<Index, Index>> met = {{team, 1}};
        Index below = held.tiles;
        for (std::size_t i = 0; i < before.dims.size(); ++i) {
            const Index shards = shard_count(before.dims[i]);
            below /= shards;
            const auto shard = static_cast<std::size_t>(static_cast<Index>(number) / below % shards);
            std::vector<std::pair<Index, Index>> next;
            for (const auto& [tile, elements] : met)
                for (const auto& [other, indices] : commons[i][shard])
                    next.emplace_back(tile * shard_count(after.dims[i]) + other, elements * indices);
            met = std::move(next);
        }
        std::vector<Wish> wishes;
        for (const auto& [tile, elements] : met)
            for (const Index device : wanted.by_tile[static_cast<std::size_t>(tile)])
                if (!std::ranges::binary_search(holders, device)) wishes.push_back({0, 0, device, elements});
        serve(network, holders, std::move(wishes), ledger);
    }
    return true;
}

/// Counts a collective: what each member wants from the tile of every other member.
bool collective(const Layout& before, const Layout& after, const AtomList& group, Index transfers_max, Ledger& ledger) {
    if (device_count(before) * combinations(group) > transfers_max) return false;
    std::vector<Common> commons;
    for (std::size_t i = 0; i < before.dims.size(); ++i) commons.push_back(common(before.dims[i], after.dims[i]));
    for (Index position = 0; position < device_count(before); ++position)
        for (const Index member : group_of(group, position)) {
            Index elements = member == position ? 0 : 1;
            for (std::size_t i = 0; i < commons.size() && elements > 0; ++i) {
                const auto& list = commons[i][static_cast<std::size_t>(value_of(before.dims[i].atoms, position))];
                const Index wants = value_of(after.dims[i].atoms, member);
                const auto found = std::ranges::find(list, wants, &std::pair<Index, Index>::first);
                elements = found == list.end() ? 0 : elements * found->second;
            }
            if (elements > 0) ledger.add(device_at(before.mesh, position), device_at(before.mesh, member), elements);
        }
    return true;
}

}  // namespace

std::optional<std::vector<Index>> loads(const Layout& before, const Step& step, const Move& move,
                                        const Machine& machine, Index transfers_max) {
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    Ledger ledger(machine, world);
    const bool looked_at = step.kind == StepKind::exchange
                               ? exchange(before, step.layout, network_of(machine, world), transfers_max, ledger)
                               : collective(before, step.layout, move.group, transfers_max, ledger);
    if (!looked_at) return std::nullopt;
    std::vector<Index> busiest = ledger.busiest();
    // To reduce and to share, each contributes a part twice.
    if (step.kind == StepKind::all_reduce)
        for (Index& elements : busiest) elements = ceil_divide(2 * elements, move.group_size);
    return busiest;
}

}  // namespace reshard::test
