// The tables of a move through nodes, and their price.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "src/base/try.hpp"
#include "src/boxes/balance.hpp"
#include "src/boxes/node_cells.hpp"

namespace reshard {

namespace {

std::size_t at(Index index) { return static_cast<std::size_t>(index); }

Index devices_of(const Mesh& mesh) {
    Index last = -1;
    for (Index position = 0; position < device_count(mesh); ++position)
        last = std::max(last, device_at(mesh, position));
    return last + 1;
}

// A part that a node wants. Its devices fetch it, unless some of them hold it already.
struct Wish {
    const NodeCells* cells = nullptr;
    Index node = 0;
    bool fetched = false;          // no device of the node holds it
    std::vector<Index> stagers;    // devices of the node that may stage it
    std::vector<Index> receivers;  // devices of the node that want it and do not hold it
};

std::vector<Index> in_node(const std::vector<Index>& devices, Index node, Index node_devices) {
    std::vector<Index> found;
    for (const Index device : devices)
        if (device / node_devices == node) found.push_back(device);
    return found;
}

std::vector<Wish> wishes_of(const std::vector<NodeCells>& parts, Index devices, Index node_devices) {
    std::vector<Wish> wishes;
    for (const NodeCells& cells : parts)
        for (Index node = 0; node < ceil_divide(devices, node_devices); ++node) {
            Wish wish{&cells, node, false, in_node(cells.holders, node, node_devices), {}};
            std::ranges::set_difference(in_node(cells.wanters, node, node_devices), wish.stagers,
                                        std::back_inserter(wish.receivers));
            if (wish.receivers.empty()) continue;
            if (wish.stagers.empty()) {
                wish.fetched = true;
                for (Index i = 0; i < node_devices && node * node_devices + i < devices; ++i)
                    wish.stagers.push_back(node * node_devices + i);
            }
            wishes.push_back(std::move(wish));
        }
    return wishes;
}

// A device that sends elements to other nodes, and the device that holds them: itself, unless it is a relay.
struct Sender {
    Index device = 0;
    Index holder = 0;
};

// Elements that the same nodes fetch.
struct Fetched {
    const NodeCells* cells = nullptr;
    std::vector<Index> nodes;
    std::vector<Sender> senders;
};

std::vector<Fetched> fetched_of(const std::vector<Wish>& wishes, Index devices, Index node_devices, bool relays) {
    std::vector<Fetched> all;
    for (const Wish& wish : wishes) {
        if (!wish.fetched) continue;
        if (!all.empty() && all.back().cells == wish.cells) {
            all.back().nodes.push_back(wish.node);
            continue;
        }
        Fetched& made = all.emplace_back(Fetched{wish.cells, {wish.node}, {}});
        for (const Index holder : wish.cells->holders) {
            made.senders.push_back({holder, holder});
            const Index first = holder / node_devices * node_devices;
            for (Index mate = first; relays && mate < std::min(devices, first + node_devices); ++mate)
                if (!std::ranges::binary_search(wish.cells->holders, mate)) made.senders.push_back({mate, holder});
        }
    }
    return all;
}

// The most that a device receives if each node divides what it fetches evenly.
Index even_part(const std::vector<Wish>& wishes, Index devices, Index node_devices) {
    std::vector<Index> of_node(at(ceil_divide(devices, node_devices)));
    for (const Wish& wish : wishes)
        if (wish.fetched) of_node[at(wish.node)] += wish.cells->elements;
    Index most = 0;
    for (Index node = 0; node < std::ssize(of_node); ++node)
        most = std::max(most, ceil_divide(of_node[at(node)], std::min(node_devices, devices - node * node_devices)));
    return most;
}

// Divides fetched elements among their senders. With relays no device sends more than `even` if that can be, and little
// is relayed. Returns the most that a device sends.
Index divide_sends(const std::vector<Fetched>& fetched, Index devices, bool relays, Index even,
                   std::vector<Divided>& sends) {
    const auto sent = [&](Index device) { return at(device); };
    const auto given = [&](Index device) { return at(devices + device); };
    const auto taken = [&](Index device) { return at(2 * devices + device); };
    for (const Fetched& one : fetched) {
        Divided& entry = sends.emplace_back();
        entry.elements = one.cells->elements;
        for (const Sender& sender : one.senders) {
            std::vector<LoadShare>& option = entry.options.emplace_back();
            option.push_back({sent(sender.device), std::ssize(one.nodes)});
            if (sender.device == sender.holder) continue;
            option.push_back({given(sender.holder), 1});
            option.push_back({taken(sender.device), 1});
        }
    }
    std::vector<Index> caps(at(3 * devices), index_max);
    if (relays) std::fill_n(caps.begin(), devices, even);
    balance(sends, std::vector<Index>(caps.size()), caps);
    std::vector<Index> loads(at(devices));
    for (std::size_t i = 0; i < fetched.size(); ++i)
        for (std::size_t k = 0; k < sends[i].parts.size(); ++k)
            loads[at(fetched[i].senders[k].device)] += sends[i].parts[k] * std::ssize(fetched[i].nodes);
    return loads.empty() ? 0 : *std::ranges::max_element(loads);
}

// Divides the wishes among the devices that stage them. A device receives at most `most` elements from other nodes, if
// that can be. Within the node, sends and receives are balanced.
void divide_stages(const std::vector<Wish>& wishes, Index devices, Index most, std::vector<Divided>& stages) {
    const auto fetched = [&](Index device) { return at(device); };
    const auto received = [&](Index device) { return at(devices + device); };
    const auto shared = [&](Index device) { return at(2 * devices + device); };
    std::vector<Index> loads(at(3 * devices));
    for (const Wish& wish : wishes) {
        Divided& entry = stages.emplace_back();
        entry.elements = wish.cells->elements;
        for (const Index receiver : wish.receivers) loads[received(receiver)] += entry.elements;
        for (const Index stager : wish.stagers) {
            std::vector<LoadShare>& option = entry.options.emplace_back();
            const bool wants = std::ranges::binary_search(wish.receivers, stager);
            if (wish.fetched) option.push_back({fetched(stager), 1});
            option.push_back({shared(stager), std::ssize(wish.receivers) - (wants ? 1 : 0)});
            if (wants) option.push_back({received(stager), -1});
        }
    }
    std::vector<Index> caps(loads.size(), index_max);
    std::fill_n(caps.begin(), devices, most);
    balance(stages, std::move(loads), caps);
}

Box numbered(Index number, const Box& box) {
    Box made = {{number, number + 1}};
    made.insert(made.end(), box.begin(), box.end());
    return made;
}

BoxTable table_of(const Layout& layout, Index numbers, Index devices) {
    BoxTable table{layout.dtype, {numbers}, std::vector<RankBoxes>(at(devices))};
    for (const Dim& dim : layout.dims) table.shape.push_back(dim.extent);
    return table;
}

// Calls add(option, box) for the boxes of each option of a part.
template <class Add>
void for_each_box(const NodeCells& cells, const Divided& divided, const Add& add) {
    Index begin = 0;
    for (std::size_t i = 0; i < divided.parts.size(); ++i) {
        const Index end = begin + divided.parts[i];
        for (const Box& box : boxes_of_range(cells, begin, end)) add(i, box);
        begin = end;
    }
}

void add_sends(NodeMove& move, const Fetched& fetched, const Divided& sends) {
    for_each_box(*fetched.cells, sends, [&](std::size_t option, const Box& box) {
        const Sender& sender = fetched.senders[option];
        std::vector<Box>& staged = move.spread.ranks[at(sender.device)].want;
        for (const Index node : fetched.nodes) {
            move.fetch.ranks[at(sender.device)].have.push_back(numbered(node, box));
            if (move.relays) move.relayed[at(sender.device)].push_back(staged.size());
        }
        if (!move.relays) return;
        staged.push_back(numbered(0, box));
        move.spread.ranks[at(sender.holder)].have.push_back(numbered(0, box));
    });
}

void add_wish(NodeMove& move, const Wish& wish, const Divided& stages) {
    for_each_box(*wish.cells, stages, [&](std::size_t option, const Box& box) {
        const std::size_t device = at(wish.stagers[option]);
        if (wish.fetched) {
            move.fetch.ranks[device].want.push_back(numbered(wish.node, box));
            return;
        }
        move.spread.ranks[device].have.push_back(numbered(1 + wish.node, box));
        move.spread.ranks[device].want.push_back(numbered(1 + wish.node, box));
    });
    for (const Index device : wish.receivers)
        for (const Box& box : wish.cells->boxes) move.share.ranks[at(device)].want.push_back(numbered(wish.node, box));
}

void add_kept(NodeMove& move, const NodeCells& cells) {
    std::vector<Index> kept;
    std::ranges::set_intersection(cells.holders, cells.wanters, std::back_inserter(kept));
    for (const Index device : kept)
        for (const Box& box : cells.boxes) {
            move.keep.ranks[at(device)].have.push_back(numbered(device, box));
            move.keep.ranks[at(device)].want.push_back(numbered(device, box));
        }
}

// Each device shares all boxes that it has staged for its node: its own ones, then the ones that it has fetched.
void add_shared(NodeMove& move) {
    for (std::size_t device = 0; device < move.share.ranks.size(); ++device) {
        std::vector<Box>& have = move.share.ranks[device].have;
        for (const Box& box : move.spread.ranks[device].want) {
            if (box.front().begin == 0) continue;
            have.push_back(box);
            have.back().front() = {box.front().begin - 1, box.front().begin};
        }
        const std::vector<Box>& fetched = move.fetch.ranks[device].want;
        have.insert(have.end(), fetched.begin(), fetched.end());
    }
}

Result<void> check_ends(const Layout& source, const Layout& target, Index node_devices) {
    RESHARD_CHECK(validate(source));
    RESHARD_CHECK(validate(target));
    RESHARD_CHECK(same_array(source, target));
    if (!source.unreduced.empty() || !target.unreduced.empty())
        return fail(Code::unsupported, "a move through nodes takes no summands");
    if (node_devices < 1)
        return fail(Code::usage, fmt::format("a node has {} devices; at least 1 is needed", node_devices));
    return {};
}

}  // namespace

Result<NodeMove> through_nodes(const Layout& source, const Layout& target, Index node_devices, bool relays) {
    RESHARD_CHECK(check_ends(source, target, node_devices));
    const Index devices = std::max(devices_of(source.mesh), devices_of(target.mesh));
    node_devices = std::min(node_devices, devices);
    RESHARD_TRY(const auto& parts, cells_of(source, target, devices));
    const std::vector<Wish> wishes = wishes_of(parts, devices, node_devices);
    const std::vector<Fetched> fetched = fetched_of(wishes, devices, node_devices, relays);
    const Index even = even_part(wishes, devices, node_devices);
    std::vector<Divided> sends;
    std::vector<Divided> stages;
    const Index sent = divide_sends(fetched, devices, relays, even, sends);
    divide_stages(wishes, devices, std::max(even, sent), stages);

    const Index nodes = ceil_divide(devices, node_devices);
    NodeMove move{node_devices,
                  relays,
                  table_of(source, devices, devices),
                  table_of(source, 1 + nodes, devices),
                  table_of(source, nodes, devices),
                  table_of(source, nodes, devices)};
    if (relays) move.relayed.resize(at(devices));
    for (const NodeCells& cells : parts) add_kept(move, cells);
    for (std::size_t i = 0; i < fetched.size(); ++i) add_sends(move, fetched[i], sends[i]);
    for (std::size_t i = 0; i < wishes.size(); ++i) add_wish(move, wishes[i], stages[i]);
    add_shared(move);
    return move;
}

Index move_picoseconds(const NodeMove& move, const Machine& machine) {
    Index time = 0;
    for (const BoxTable* table : {&move.keep, &move.spread, &move.fetch, &move.share})
        time = saturating_add(time, exchange_picoseconds(*table, machine));
    return time;
}

Result<NodeMove> through_nodes(const Layout& source, const Layout& target, const Machine& machine) {
    std::optional<NodeMove> best;
    for (std::size_t level = 0; level + 1 < machine.levels.size(); ++level) {
        for (const bool relays : {false, true}) {
            RESHARD_TRY(auto& move, through_nodes(source, target, machine.levels[level].devices, relays));
            if (!best || move_picoseconds(move, machine) < move_picoseconds(*best, machine)) best = std::move(move);
        }
    }
    if (!best) return fail(Code::usage, fmt::format("the machine {} has one level, so no nodes", machine.name));
    return std::move(*best);
}

}  // namespace reshard
