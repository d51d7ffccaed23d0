// The tables of a move through nodes, and their price.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "reshard/text.hpp"
#include "src/base/at.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/boxes/balance.hpp"
#include "src/boxes/node_cells.hpp"
#include "src/boxes/routes.hpp"

namespace reshard {

namespace {

constexpr Index price_max = 1024;
constexpr Index choices_max = Index{1} << 17;

Index devices_of(const Mesh& mesh) {
    Index last = -1;
    for (Index position = 0; position < device_count(mesh); ++position)
        last = std::max(last, device_at(mesh, position));
    return last + 1;
}

// A device that passes elements on, and the device that it gets them from. Both are the same if the device holds them.
// If the device fetches the elements, they come from other nodes.
struct Carrier {
    Index device = 0;
    std::optional<Index> holder;
};

// Adds the devices of a node that may pass on the cells of one of its holders.
void add_carriers(Index holder, const std::vector<Index>& holders, const NodeWay& way, Index devices,
                  std::vector<Carrier>& carriers) {
    carriers.push_back({holder, holder});
    const Index first = holder / way.node_devices * way.node_devices;
    for (Index mate = first; way.relays && mate < std::min(devices, first + way.node_devices); ++mate)
        if (!std::ranges::binary_search(holders, mate)) carriers.push_back({mate, holder});
}

// A part that a node wants. Its devices fetch it, unless some of them hold it already.
struct Wish {
    const NodeCells* cells = nullptr;
    Index node = 0;
    bool fetched = false;          // no device of the node holds it
    std::vector<Carrier> stagers;  // devices of the node that may stage it
    std::vector<Index> receivers;  // devices of the node that want it and do not hold it
};

std::vector<Index> in_node(const std::vector<Index>& devices, Index node, Index node_devices) {
    std::vector<Index> found;
    for (const Index device : devices)
        if (device / node_devices == node) found.push_back(device);
    return found;
}

std::vector<Wish> wishes_of(const std::vector<NodeCells>& parts, Index devices, const NodeWay& way) {
    std::vector<Wish> wishes;
    for (const NodeCells& cells : parts)
        for (Index node = 0; node < ceil_divide(devices, way.node_devices); ++node) {
            const std::vector<Index> holders = in_node(cells.holders, node, way.node_devices);
            Wish wish{&cells, node, holders.empty(), {}, {}};
            std::ranges::set_difference(in_node(cells.wanters, node, way.node_devices), holders,
                                        std::back_inserter(wish.receivers));
            if (wish.receivers.empty()) continue;
            for (const Index holder : holders) add_carriers(holder, holders, way, devices, wish.stagers);
            for (Index i = 0; wish.fetched && i < way.node_devices && node * way.node_devices + i < devices; ++i)
                wish.stagers.push_back({node * way.node_devices + i, {}});
            wishes.push_back(std::move(wish));
        }
    return wishes;
}

// Elements that the same nodes fetch.
struct Fetched {
    const NodeCells* cells = nullptr;
    std::vector<Index> nodes;
    std::vector<Carrier> senders;
};

std::vector<Fetched> fetched_of(const std::vector<Wish>& wishes, Index devices, const NodeWay& way) {
    std::vector<Fetched> all;
    for (const Wish& wish : wishes) {
        if (!wish.fetched) continue;
        if (!all.empty() && all.back().cells == wish.cells) {
            all.back().nodes.push_back(wish.node);
            continue;
        }
        Fetched& made = all.emplace_back(Fetched{wish.cells, {wish.node}, {}});
        for (const Index holder : wish.cells->holders)
            add_carriers(holder, wish.cells->holders, way, devices, made.senders);
    }
    return all;
}

// The loads of each device: elements that it sends to and receives from other nodes, that it gives to and takes from
// devices of its node to pass them on, and that it shares and receives in the end.
struct Loads {
    Index devices = 0;
    [[nodiscard]] std::size_t sent(Index device) const { return at(device); }
    [[nodiscard]] std::size_t fetched(Index device) const { return at(devices + device); }
    [[nodiscard]] std::size_t given(Index device) const { return at(2 * devices + device); }
    [[nodiscard]] std::size_t taken(Index device) const { return at(3 * devices + device); }
    [[nodiscard]] std::size_t shared(Index device) const { return at(4 * devices + device); }
    [[nodiscard]] std::size_t received(Index device) const { return at(5 * devices + device); }
};

void add_passed_on(const Loads& loads, const Carrier& carrier, std::vector<LoadShare>& option) {
    if (!carrier.holder || *carrier.holder == carrier.device) return;
    option.push_back({loads.given(*carrier.holder), 1});
    option.push_back({loads.taken(carrier.device), 1});
}

Divided sends_of(const Fetched& fetched, const Loads& loads) {
    Divided entry{fetched.cells->elements, {}, {}};
    for (const Carrier& sender : fetched.senders) {
        std::vector<LoadShare>& option = entry.options.emplace_back();
        option.push_back({loads.sent(sender.device), std::ssize(fetched.nodes)});
        add_passed_on(loads, sender, option);
    }
    return entry;
}

// A receiver that stages a part receives less of it in the end.
Divided stages_of(const Wish& wish, const Loads& loads) {
    Divided entry{wish.cells->elements, {}, {}};
    for (const Carrier& stager : wish.stagers) {
        std::vector<LoadShare>& option = entry.options.emplace_back();
        const bool wants = std::ranges::binary_search(wish.receivers, stager.device);
        if (wish.fetched) option.push_back({loads.fetched(stager.device), 1});
        option.push_back({loads.shared(stager.device), std::ssize(wish.receivers) - (wants ? 1 : 0)});
        if (wants) option.push_back({loads.received(stager.device), -1});
        add_passed_on(loads, stager, option);
    }
    return entry;
}

// The parts of all senders, then the parts of all stagers.
std::vector<Divided> divide(const std::vector<Fetched>& fetched, const std::vector<Wish>& wishes, Index devices,
                            Index outside_price) {
    const Loads loads{devices};
    std::vector<Index> begin(at(6 * devices));
    std::vector<Divided> entries;
    for (const Fetched& one : fetched) entries.push_back(sends_of(one, loads));
    for (const Wish& wish : wishes) {
        entries.push_back(stages_of(wish, loads));
        for (const Index receiver : wish.receivers) begin[loads.received(receiver)] += wish.cells->elements;
    }
    const std::size_t both = at(2 * devices);
    balance(entries, {{both, outside_price}, {both, 1}, {both, 1}}, std::move(begin));
    return entries;
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
        const Carrier& sender = fetched.senders[option];
        std::vector<Box>& staged = move.spread.ranks[at(sender.device)].want;
        for (const Index node : fetched.nodes) {
            move.fetch.ranks[at(sender.device)].have.push_back(numbered(node, box));
            if (move.way.relays) move.relayed[at(sender.device)].push_back(staged.size());
        }
        if (!move.way.relays) return;
        staged.push_back(numbered(0, box));
        move.spread.ranks[at(*sender.holder)].have.push_back(numbered(0, box));
    });
}

void add_wish(NodeMove& move, const Wish& wish, const Divided& stages) {
    for_each_box(*wish.cells, stages, [&](std::size_t option, const Box& box) {
        const Carrier& stager = wish.stagers[option];
        if (wish.fetched) {
            move.fetch.ranks[at(stager.device)].want.push_back(numbered(wish.node, box));
            return;
        }
        move.spread.ranks[at(*stager.holder)].have.push_back(numbered(1 + wish.node, box));
        move.spread.ranks[at(stager.device)].want.push_back(numbered(1 + wish.node, box));
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

Result<void> check_choices(const std::vector<Fetched>& fetched, const std::vector<Wish>& wishes) {
    Index choices = 0;
    for (const Fetched& one : fetched) choices += std::ssize(one.senders);
    for (const Wish& wish : wishes) choices += std::ssize(wish.stagers);
    if (choices <= choices_max) return {};
    return fail(Code::unsupported,
                fmt::format("a move through nodes has {} choices of a device for a part of the array; "
                            "at most {} are supported",
                            choices, choices_max));
}

Result<void> check_ends(const Problem& ends, const NodeWay& way) {
    const auto& [source, target] = ends;
    RESHARD_CHECK(validate(source));
    RESHARD_CHECK(validate(target));
    RESHARD_CHECK(same_array(source, target));
    if (!source.unreduced.empty() || !target.unreduced.empty())
        return fail(Code::unsupported, "a move through nodes takes no summands");
    if (way.node_devices < 1)
        return fail(Code::usage, fmt::format("a node has {} devices; at least 1 is needed", way.node_devices));
    if (way.outside_price < 1 || way.outside_price > price_max)
        return fail(Code::usage, fmt::format("an element between nodes costs as much as {} within one; 1 to {} are "
                                             "supported",
                                             way.outside_price, price_max));
    return {};
}

}  // namespace

Result<NodeMove> through_nodes(const Problem& ends, const NodeWay& wanted) {
    RESHARD_CHECK(check_ends(ends, wanted));
    const auto& [source, target] = ends;
    const Index devices = std::max(devices_of(source.mesh), devices_of(target.mesh));
    NodeWay way = wanted;
    way.node_devices = std::min(way.node_devices, devices);
    RESHARD_TRY(const auto& parts, cells_of(source, target, devices));
    const std::vector<Wish> wishes = wishes_of(parts, devices, way);
    const std::vector<Fetched> fetched = fetched_of(wishes, devices, way);
    RESHARD_CHECK(check_choices(fetched, wishes));
    const std::vector<Divided> divided = divide(fetched, wishes, devices, way.outside_price);

    const Index nodes = ceil_divide(devices, way.node_devices);
    NodeMove move{ends,
                  way,
                  table_of(source, devices, devices),
                  table_of(source, 1 + nodes, devices),
                  table_of(source, nodes, devices),
                  table_of(source, nodes, devices)};
    if (way.relays) move.relayed.resize(at(devices));
    for (const NodeCells& cells : parts) add_kept(move, cells);
    for (std::size_t i = 0; i < fetched.size(); ++i) add_sends(move, fetched[i], divided[i]);
    for (std::size_t i = 0; i < wishes.size(); ++i) add_wish(move, wishes[i], divided[fetched.size() + i]);
    add_shared(move);
    return move;
}

Index move_picoseconds(const NodeMove& move, const Machine& machine) {
    Index time = 0;
    for (const BoxTable* table : {&move.keep, &move.spread, &move.fetch, &move.share})
        time = saturating_add(time, exchange_picoseconds(*table, machine));
    return time;
}

Index footprint_bytes(const NodeMove& move) {
    Index staged = 0;
    for (std::size_t device = 0; device < move.spread.ranks.size(); ++device) {
        Index elements = 0;
        for (const BoxTable* table : {&move.spread, &move.fetch})
            for (const Box& box : table->ranks[device].want) elements += count(box);
        staged = std::max(staged, elements);
    }
    const Index tiles = saturating_add(tile_bytes(move.ends.source), tile_bytes(move.ends.target));
    return saturating_add(tiles, saturating_multiply(staged, size_of(move.ends.source.dtype)));
}

Result<NodeMove> through_nodes(const Problem& ends, const Machine& machine) {
    std::optional<NodeMove> best;
    Index least = 0;
    for (std::size_t i = 0; i + 1 < machine.levels.size(); ++i) {
        const Level& inside = machine.levels[i];
        const Level& outside = machine.levels[i + 1];
        const Index price = inside.bytes_per_second / std::max<Index>(outside.bytes_per_second, 1);
        for (const bool relays : {false, true}) {
            const NodeWay way{inside.devices, relays, std::clamp<Index>(price, 1, price_max)};
            RESHARD_TRY(auto& move, through_nodes(ends, way));
            const Index time = move_picoseconds(move, machine);
            if (best && time >= least) continue;
            best = std::move(move);
            least = time;
        }
    }
    if (!best) return fail(Code::usage, fmt::format("the machine {} has one level, so no nodes", machine.name));
    return std::move(*best);
}

std::optional<NodeMove> faster_through_nodes(const Problem& ends, Index plan_picoseconds, const Options& options) {
    const Limits& limits = options.limits;
    if (options.objective != Objective::time || options.vocabulary != Vocabulary::all || !options.first_steps.empty() ||
        limits.peak_bytes_max || limits.memory.donate || options.machine.levels.size() < 2)
        return {};
    auto move = through_nodes(ends, options.machine);
    if (!move || move_picoseconds(*move, options.machine) >= plan_picoseconds) return {};
    if (limits.memory.footprint_bytes_max && footprint_bytes(*move) > *limits.memory.footprint_bytes_max) return {};
    return std::move(*move);
}

std::uint64_t fingerprint(const NodeMove& move) {
    Hash hash;
    hash.add("through nodes");
    for (const Layout* layout : {&move.ends.source, &move.ends.target})
        hash.add(format(layout->mesh) + " " + format(*layout) + ";");
    for (const Index number : {move.way.node_devices, Index{move.way.relays ? 1 : 0}, move.way.outside_price})
        hash.add(number);
    for (const BoxTable* table : {&move.keep, &move.spread, &move.fetch, &move.share}) add(hash, *table);
    return hash.value();
}

}  // namespace reshard
