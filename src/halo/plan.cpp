#include "reshard/halo/plan.hpp"

#include <algorithm>
#include <map>

#include "src/base/try.hpp"
#include "src/halo/rounds.hpp"
#include "src/price/carried.hpp"
#include "src/price/level_price.hpp"

namespace reshard {

namespace {

constexpr Index halo_devices_max = 4096;
constexpr Index sampled_devices = 16;     // at least
constexpr Index sampled_block_max = 128;  // a larger block of a level is not counted as a whole

bool counts_all(const Mesh& mesh) { return device_count(mesh) <= halo_devices_max; }

// Positions in the mesh whose devices are counted, one after the other.
struct CountedDevices {
    Index first = 0;
    Index count = 0;
};

// All, or some in the middle. They begin with a block of a level, so whole blocks are among them.
CountedDevices counted_in(const Mesh& mesh, const Machine& machine) {
    const Index devices = device_count(mesh);
    if (counts_all(mesh)) return {0, devices};
    Index block = 1;
    for (const Level& level : machine.levels)
        if (level.devices <= sampled_block_max) block = std::max(block, level.devices);
    const Index count = std::max(block, sampled_devices);
    Index middle = 0;  // of each axis
    for (const Axis& axis : mesh.axes) middle = middle * axis.size + axis.size / 2;
    return {std::min(middle, devices - count) / block * block, count};
}

// All devices that are counted. A source on other devices adds its own.
std::vector<Index> devices_of(const HaloMove& move, const Machine& machine) {
    std::vector<Index> devices;
    const auto add = [&](const Mesh& mesh) {
        const CountedDevices counted = counted_in(mesh, machine);
        for (Index i = 0; i < counted.count; ++i) devices.push_back(device_at(mesh, counted.first + i));
    };
    add(move.target.owned.mesh);
    if (move.source && !same_order(move.source->mesh, move.target.owned.mesh)) add(move.source->mesh);
    std::ranges::sort(devices);
    const auto [first, last] = std::ranges::unique(devices);
    devices.erase(first, last);
    return devices;
}

// The elements that a device exchanges with each peer, and what it copies itself.
struct Load {
    std::map<Index, Index> received;
    std::vector<std::pair<Index, Index>> sent;  // a peer may have several
    Index cells = 0;                            // that it writes
    Index runs = 0;                             // of consecutive cells
};

Index run_count(const Box& box) { return box.empty() ? 1 : count(box) / box.back().size(); }

Load load_of(const HaloMove& move, const HaloRound& round, Index device) {
    Load load;
    for (const Wrap& wrap : wraps_of(owners_of(move), wanted_in(move, round), device)) {
        each_receive(move, round, device, wrap, [&](Index peer, const Box& box) {
            load.cells += count(box);
            load.runs += run_count(box);
            if (peer != device) load.received[peer] += count(box);
        });
        each_send(move, round, device, wrap,
                  [&](Index peer, const Box& box) { load.sent.emplace_back(peer, count(box)); });
    }
    return load;
}

// The traffic of one round.
class RoundTraffic {
public:
    explicit RoundTraffic(const Machine& machine)
        : machine_(machine), levels_(machine.levels.size()), blocks_(levels_) {
        traffic_ = {std::vector<Index>(levels_), std::vector<Index>(levels_), std::vector<Index>(levels_)};
    }

    void add(Index device, const Load& load) {
        std::vector<Index> in(levels_), out(levels_), messages(levels_);
        for (const auto& [peer, elements] : load.received) {
            const std::size_t level = level_between(device, peer);
            in[level] += elements;
            ++messages[level];
            traffic_.pair[level] = std::max(traffic_.pair[level], elements);
        }
        for (const auto& [peer, elements] : load.sent) out[level_between(device, peer)] += elements;
        for (std::size_t level = 0; level < levels_; ++level) {
            Block& block = blocks_[level][device / sharing_block(machine_, level)];
            block.in += in[level];
            block.out += out[level];
            traffic_.elements[level] = std::max({traffic_.elements[level], block.in, block.out});
            traffic_.messages[level] = std::max(traffic_.messages[level], messages[level]);
        }
    }
    [[nodiscard]] const Traffic& traffic() const { return traffic_; }

private:
    struct Block {
        Index in = 0;
        Index out = 0;
    };

    [[nodiscard]] std::size_t level_between(Index one, Index other) const {
        std::size_t level = 0;
        while (level + 1 < levels_ && one / machine_.levels[level].devices != other / machine_.levels[level].devices)
            ++level;
        return level;
    }

    const Machine& machine_;
    std::size_t levels_;
    std::vector<std::map<Index, Block>> blocks_;  // per level: devices that share a connection
    Traffic traffic_;
};

Index copies_picoseconds(const Load& load, Index element_bytes, const Machine& machine) {
    return saturating_add(transfer_picoseconds(load.cells * element_bytes, machine.copy_bytes_per_second),
                          saturating_multiply(std::max<Index>(load.runs - 1, 0), machine.copy_run_ps));
}

}  // namespace

std::string_view name(HaloWay way) { return way == HaloWay::at_once ? "all at once" : "dimension by dimension"; }

Result<HaloPrice> price_halo(const HaloMove& move, HaloWay way, const Machine& machine) {
    RESHARD_CHECK(validate(move, way));
    const Index element_bytes = size_of(move.target.owned.dtype);
    const std::vector<Index> devices = devices_of(move, machine);
    HaloPrice price{way, 0, 0, 0, 0, counts_all(move.target.owned.mesh) && counts_all(owners_of(move).mesh)};
    std::vector<Index> received(devices.size()), messages(devices.size());
    for (const HaloRound& round : rounds_of(move, way)) {
        RoundTraffic tally(machine);
        Index copies = 0;
        for (std::size_t i = 0; i < received.size(); ++i) {
            const Load load = load_of(move, round, devices[i]);
            tally.add(devices[i], load);
            copies = std::max(copies, copies_picoseconds(load, element_bytes, machine));
            for (const auto& [peer, elements] : load.received) received[i] += elements;
            messages[i] += std::ssize(load.received);
        }
        const Traffic& traffic = tally.traffic();
        for (std::size_t level = 0; level < machine.levels.size(); ++level)
            price.picoseconds = saturating_add(
                price.picoseconds, level_picoseconds(machine.levels[level], traffic.elements[level],
                                                     traffic.pair[level], traffic.messages[level], element_bytes));
        price.picoseconds = saturating_add(price.picoseconds, copies);
        price.rounds += std::ranges::max(traffic.elements) > 0 ? 1 : 0;
    }
    price.received_bytes = std::ranges::max(received) * element_bytes;
    price.messages = std::ranges::max(messages);
    return price;
}

Result<HaloPlan> plan_halo(const HaloMove& move, const Machine& machine, const Capabilities& capabilities) {
    HaloPlan plan;
    RESHARD_TRY(const auto& at_once, price_halo(move, HaloWay::at_once, machine));
    plan.prices.push_back(at_once);
    if (move.source) return plan;
    RESHARD_TRY(const auto& by_dimension, price_halo(move, HaloWay::by_dimension, machine));
    plan.prices.push_back(by_dimension);
    const bool cheap = by_dimension.picoseconds < at_once.picoseconds / 2;
    if (!capabilities.one_exchange && cheap) plan.way = HaloWay::by_dimension;
    return plan;
}

}  // namespace reshard
