// Of more devices than transfers are looked at for, the price of a step is what its schedules carry: never less, and at
// most a hundredth more. What they carry is counted here transfer by transfer, by the stripe rule in its plainest form.
#include <algorithm>
#include <numeric>
#include <random>

#include "reshard/algebra/schedule.hpp"
#include "reshard/cost.hpp"
#include "reshard/text.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Random = std::mt19937_64;

Index some(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }
Index drawn(Random& random, Index first, Index last) { return first + some(random, last - first + 1); }

/// What each device sends and receives over each level.
class Ledger {
public:
    Ledger(const Machine& machine, Index world) : machine_(machine), world_(static_cast<std::size_t>(world)) {
        for (auto* all : {&in_, &out_}) all->resize(machine.levels.size() * world_);
    }

    void add(Index from, Index to, Index elements) {
        std::size_t level = 0;
        while (level + 1 < machine_.levels.size() &&
               from / machine_.levels[level].devices != to / machine_.levels[level].devices)
            ++level;
        out_[level * world_ + static_cast<std::size_t>(from)] += elements;
        in_[level * world_ + static_cast<std::size_t>(to)] += elements;
    }

    /// By level, of the busiest device, or of the busiest block where devices share a connection.
    [[nodiscard]] std::vector<Index> busiest() const {
        std::vector<Index> most(machine_.levels.size());
        for (std::size_t level = 0; level < most.size(); ++level) {
            const bool shared = level > 0 && machine_.levels[level].shared;
            const Index block = shared ? machine_.levels[level - 1].devices : 1;
            for (const auto* all : {&in_, &out_}) {
                std::vector<Index> sums(world_ / static_cast<std::size_t>(block) + 1);
                for (std::size_t device = 0; device < world_; ++device)
                    sums[device / static_cast<std::size_t>(block)] += (*all)[level * world_ + device];
                most[level] = std::max(most[level], *std::ranges::max_element(sums));
            }
        }
        return most;
    }

private:
    const Machine& machine_;
    std::size_t world_;
    std::vector<Index> in_;
    std::vector<Index> out_;
};

/// By shard of one cut, the shards of the other that have indices in common, and how many.
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

/// The devices by what they have: a number of the tile and of the team, for teams that need nothing of each other.
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

/// The nearest holders share what is wanted, laid end to end by device.
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

/// An exchange, source tile by source tile. False where there are more transfers than can be looked at.
bool exchange(const Layout& before, const Layout& after, const Network& network, Index transfers_max, Ledger& ledger) {
    AtomList held_team = before.unreduced;
    AtomList wanted_team = after.unreduced;
    if (same_order(before.mesh, after.mesh))
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
        // Numbers of tiles that it meets, and elements.
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

/// A collective: what a member wants of the tile of each other.
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

std::optional<std::vector<Index>> loads(const Layout& before, const Step& step, const Move& move,
                                        const Machine& machine, Index transfers_max) {
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    Ledger ledger(machine, world);
    const bool looked_at = step.kind == StepKind::exchange
                               ? exchange(before, step.layout, network_of(machine, world), transfers_max, ledger)
                               : collective(before, step.layout, move.group, transfers_max, ledger);
    if (!looked_at) return std::nullopt;
    std::vector<Index> busiest = ledger.busiest();
    // Reduced and shared: each contributes a part, twice.
    if (step.kind == StepKind::all_reduce)
        for (Index& elements : busiest) elements = ceil_divide(2 * elements, move.group_size);
    return busiest;
}

/// One to three axes.
Mesh random_mesh(Random& random, Index least, Index most) {
    Mesh mesh;
    const Index devices = drawn(random, least, most);
    Index left = devices;
    for (Index axes = drawn(random, 1, 3); axes > 0 && left > 1; --axes) {
        const Index size = axes == 1 ? left : drawn(random, 2, std::min<Index>(left, some(random, 2) == 0 ? 12 : 300));
        mesh.axes.push_back({"a" + std::to_string(mesh.axes.size()), size});
        left = ceil_divide(left, size);
    }
    std::ranges::shuffle(mesh.axes, random);
    return mesh;
}

/// The devices of a mesh as they come, with an offset, apart, reversed, or rows of them in any order.
DeviceList random_devices(Random& random, Index devices) {
    std::vector<Index> list(static_cast<std::size_t>(devices));
    std::iota(list.begin(), list.end(), some(random, 3) == 0 ? some(random, 2 * devices) : some(random, 30));
    switch (some(random, 6)) {
        case 0:
            return {};
        case 1:
            std::ranges::reverse(list);
            break;
        case 2:
            for (Index& device : list) device *= drawn(random, 2, 2 + some(random, 3));
            break;
        case 3: {
            const Index row = drawn(random, 1, 40);
            const Index rows = ceil_divide(devices, row);
            std::vector<Index> order(static_cast<std::size_t>(rows));
            std::iota(order.begin(), order.end(), 0);
            std::ranges::shuffle(order, random);
            for (Index& device : list) {
                const Index at = &device - list.data();
                device = order[static_cast<std::size_t>(at / row)] * row + at % row;
            }
            break;
        }
        default:
            break;
    }
    std::vector<Index> sorted = list;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return {};
    return list;
}

Layout random_layout(const Mesh& mesh, const std::vector<Index>& extents, bool summed, Random& random) {
    P spec(extents.size());
    std::vector<std::string> axes, summands;
    for (const Axis& axis : mesh.axes) axes.push_back(axis.name);
    std::ranges::shuffle(axes, random);
    for (const std::string& axis : axes) {
        const auto dim = static_cast<std::size_t>(some(random, 6 * std::ssize(extents) + 1)) / 6;
        if (dim < spec.size())
            spec[dim].axes.push_back(axis);
        else if (summed && summands.empty())
            summands.push_back(axis);
    }
    Layout layout = *make_layout(mesh, DType::u8, extents, spec, summands);
    for (Dim& dim : layout.dims) {
        const Index shards = shard_count(dim);
        if (shards == 1 || shards > 3000 || some(random, 4) > 0) continue;
        if (some(random, 2) == 0) {
            dim = cut_in_blocks(dim.extent, dim.atoms, drawn(random, 1, 1 + tile_extent(dim)));
            continue;
        }
        std::vector<Index> shares(static_cast<std::size_t>(shards));
        for (Index left = dim.extent; left > 0;) {
            const Index share = std::min(left, drawn(random, 1, 2 * tile_extent(dim)));
            shares[static_cast<std::size_t>(some(random, shards))] += share;
            left -= share;
        }
        dim = cut_by_shares(dim.atoms, shares);
    }
    return layout;
}

/// Two or three levels, whose blocks nest in each other and nowhere in the mesh.
Machine random_machine_of(Index devices, Random& random) {
    Machine machine{"many", {}, 1'000'000'000};
    Index block = 1;
    for (Index levels = drawn(random, 1, 2); levels > 0; --levels) {
        block *= drawn(random, 2, machine.levels.empty() ? 20 : std::max<Index>(2, some(random, 2) * devices / 100));
        machine.levels.push_back({"l", block, 1000, 1'000'000'000, 0, some(random, 2) == 0});
    }
    machine.levels.push_back({"all", index_max, 1000, 1'000'000'000, 0, some(random, 2) == 0});
    return machine;
}

struct Question {
    Layout before;
    Step step;
    Machine machine;
};

/// An exchange between two meshes or on one, or a collective.
Question random_question_of(Index least, Index most, Random& random) {
    std::vector<Index> extents;
    for (Index rank = drawn(random, 1, 3); rank > 0; --rank)
        extents.push_back(some(random, 2) == 0 ? 1 << some(random, 14) : drawn(random, 1, 9000));
    Mesh mesh = random_mesh(random, least, most);
    mesh.devices = random_devices(random, device_count(mesh));
    Mesh other = mesh;
    if (some(random, 3) > 0) {
        other = random_mesh(random, least, most);
        other.devices = random_devices(random, device_count(other));
    }
    const bool summed = some(random, 4) == 0;
    Question question{random_layout(mesh, extents, summed, random),
                      {StepKind::exchange, random_layout(other, extents, summed, random)},
                      random_machine_of(most, random)};
    // A collective that goes from the source somewhere.
    if (some(random, 3) == 0) {
        question.step.layout = question.before;
        for (Dim& dim : question.step.layout.dims)
            if (!dim.atoms.empty() && dim.pieces.empty() && some(random, 2) == 0) dim.atoms.pop_back();
        question.step.kind = StepKind::all_gather;
        if (!question.before.unreduced.empty()) {
            question.step.layout = question.before;
            question.step.layout.unreduced.clear();
            question.step.kind = StepKind::all_reduce;
        }
    }
    return question;
}

void log(const Question& question, const std::vector<Index>& stated, const std::vector<Index>& carried) {
    RC_LOG() << "meshes of " << device_count(question.before) << " and " << device_count(question.step.layout)
             << " devices, from " << device_at(question.before.mesh, 0) << " and "
             << device_at(question.step.layout.mesh, 0) << "\n"
             << format(question.before) << " " << name(question.step.kind) << " " << format(question.step.layout)
             << "\n"
             << format(question.machine) << "stated " << rc::toString(stated) << ", carried " << rc::toString(carried);
}

Traffic stated_traffic(const Question& question, const Move& move) {
    const Index world = std::max(world_size(question.before.mesh), world_size(question.step.layout.mesh));
    return traffic_of(question.before, question.step, move, question.machine, network_of(question.machine, world));
}

TEST(TrafficProperty, BeyondFourThousandDevicesThePriceIsWithinAHundredth) {
    int compared = 0;
    std::array<int, 3> kinds{};  // between meshes, on one, collectives
    const int count = long_run() ? 600 : cases(16);
    check_property(count, [&] {
        Random random(*rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40)));
        const Index least = some(random, 2) == 0 ? 4097 : drawn(random, 4097, 65'536);
        const Question question = random_question_of(least, std::min<Index>(2 * least, 65'536), random);
        const auto move = type_step(question.before, question.step);
        if (!move) return;
        const auto carried = loads(question.before, question.step, *move, question.machine, 6'000'000);
        if (!carried) return;
        const std::vector<Index> stated = stated_traffic(question, *move).elements;
        log(question, stated, *carried);
        for (std::size_t i = 0; i < carried->size(); ++i) {
            RC_ASSERT(stated[i] >= (*carried)[i]);
            RC_ASSERT(stated[i] <= (*carried)[i] + (*carried)[i] / 100);
        }
        ++compared;
        const bool one = same_order(question.before.mesh, question.step.layout.mesh);
        ++kinds[question.step.kind != StepKind::exchange ? 2 : one ? 1 : 0];
    });
    EXPECT_GE(compared, count / 3);
    for (const int kind : kinds) EXPECT_GE(kind, count / 20);
}

// What is counted above is what schedules say, where all of them can be made.
TEST(TrafficProperty, WhatIsCountedOfManyDevicesIsWhatSchedulesCarry) {
    int compared = 0;
    check_property(cases(200), [&] {
        Random random(*rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40)));
        const Question question = random_question_of(2, 90, random);
        const auto move = type_step(question.before, question.step);
        if (!move) return;
        const Index world = std::max(world_size(question.before.mesh), world_size(question.step.layout.mesh));
        Ledger ledger(question.machine, world);
        for (Index rank = 0; rank < world; ++rank)
            for (const Transfer& one :
                 schedule(question.before, question.step, rank, network_of(question.machine, world)).receives)
                if (one.peer != rank) ledger.add(one.peer, rank, count(one.box));
        std::vector<Index> scheduled = ledger.busiest();
        if (question.step.kind == StepKind::all_reduce)
            for (Index& elements : scheduled) elements = ceil_divide(2 * elements, move->group_size);
        const auto carried = loads(question.before, question.step, *move, question.machine, index_max);
        log(question, scheduled, *carried);
        RC_ASSERT(scheduled == *carried);
        ++compared;
    });
    EXPECT_GE(compared, cases(200) / 3);
}

}  // namespace
}  // namespace reshard::test
