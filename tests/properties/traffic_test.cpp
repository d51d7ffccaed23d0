// The price of a step on a network equals what the schedules of all ranks carry over it, for any numbers of devices.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "reshard/planner/cost.hpp"
#include "reshard/planner/schedule.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

/// A machine of up to three levels. The outermost may have fewer devices than the mesh.
Machine random_machine(Random& random) {
    Machine machine{"random", {}, 1'000'000'000};
    Index block = 1;
    const Index levels = 1 + below(random, 3);
    for (Index i = 0; i < levels; ++i) {
        block *= 1 + below(random, i == 0 ? 6 : 4) + (i == 0 ? 0 : 1);
        const bool all = i + 1 == levels && below(random, 2) == 0;
        machine.levels.push_back({"l" + std::to_string(i), all ? index_max : block, 1000, 1'000'000'000, 0,
                                  below(random, 2) == 0, below(random, 2) * 1'000'000});
    }
    return machine;
}

std::size_t level_between(const Machine& machine, Index a, Index b) {
    std::size_t level = 0;
    while (level + 1 < machine.levels.size() && a / machine.levels[level].devices != b / machine.levels[level].devices)
        ++level;
    return level;
}

/// Elements over each level by device, or by block if the level is shared, and the most between two devices.
struct Counted {
    std::vector<Index> elements;
    std::vector<Index> pair;
};

Counted counted(const Layout& before, const Step& step, const Machine& machine, const Network& network) {
    const std::size_t levels = machine.levels.size();
    // Elements in and out by level and block, and elements by level, receiver and sender.
    std::map<std::pair<std::size_t, Index>, std::array<Index, 2>> blocks;
    std::map<std::array<Index, 3>, Index> pairs;
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    Index members = 1;
    for (Index rank = 0; rank < world; ++rank) {
        const Schedule mine = schedule(before, step, rank, network);
        std::map<Index, Index> partners;
        for (const bool in : {true, false})
            for (const Transfer& transfer : in ? mine.receives : mine.sends) {
                const Index peer = transfer.peer;
                partners[peer] = 1;
                if (peer == rank) continue;
                const std::size_t level = level_between(machine, rank, peer);
                const bool shared = level > 0 && machine.levels[level].shared;
                const Index block = rank / (shared ? machine.levels[level - 1].devices : 1);
                blocks[{level, block}][in ? 0 : 1] += count(transfer.box);
                if (in) pairs[{static_cast<Index>(level), rank, peer}] += count(transfer.box);
            }
        members = std::max<Index>(members, std::ssize(partners));
    }
    // The schedule of an all_reduce lists the contributors. To reduce and to share, each contributes a part twice.
    const bool sums = step.kind == StepKind::all_reduce;
    const auto carried = [&](Index elements) { return sums ? ceil_divide(2 * elements, members) : elements; };
    Counted most{std::vector<Index>(levels), std::vector<Index>(levels)};
    for (const auto& [where, both] : blocks)
        for (const Index elements : both)
            most.elements[where.first] = std::max(most.elements[where.first], carried(elements));
    for (const auto& [who, elements] : pairs)
        most.pair[static_cast<std::size_t>(who[0])] =
            std::max(most.pair[static_cast<std::size_t>(who[0])], carried(elements));
    return most;
}

void compare(const Layout& before, const Step& step, const Machine& machine, int& compared) {
    const auto move = type_step(before, step);
    if (!move) return;
    const Index world = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    const Network network = network_of(machine, world);
    const Traffic stated = traffic_of(before, step, *move, machine, network);
    const Counted truth = counted(before, step, machine, network);
    RC_LOG() << "mesh " << format(before.mesh) << " -> " << format(step.layout.mesh) << "\n"
             << format(before) << " " << name(step.kind) << " " << format(step.layout) << "\n"
             << format(machine) << "stated " << rc::toString(stated.elements) << " pair " << rc::toString(stated.pair)
             << ", carried " << rc::toString(truth.elements) << " pair " << rc::toString(truth.pair);
    ++compared;
    if (machine.levels.size() == 1) {
        // The typing rule counts kept elements as sent if cuts are uneven.
        RC_ASSERT(stated.elements[0] >= truth.elements[0]);
        return;
    }
    RC_ASSERT(stated.elements == truth.elements);
    for (std::size_t i = 0; i < truth.pair.size(); ++i) RC_ASSERT(stated.pair[i] >= truth.pair[i]);
}

TEST(TrafficProperty, BetweenAnyTwoLayoutsThePriceIsWhatSchedulesCarry) {
    int compared = 0;
    check_property(cases(2500), [&] {
        const auto seed = *rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40));
        Random random(seed);
        const Problem problem = problem_of(random_question(seed, 1 + below(random, 18)));
        if (!same_array(problem.source, problem.target)) return;
        const Machine machine = random_machine(random);
        for (const StepKind kind : kinds_of_one_shape)
            if (kind != StepKind::slice && kind != StepKind::zero_fill)
                compare(problem.source, {kind, problem.target}, machine, compared);
    });
    EXPECT_GE(compared, cases(2500) / 3);
}

/// The devices of a mesh in order, with an offset, with gaps, reversed, or any devices.
DeviceList random_devices(Random& random, Index devices) {
    std::vector<Index> list(static_cast<std::size_t>(devices));
    std::iota(list.begin(), list.end(), 0);
    const Index stride = 1 + below(random, 4);
    const Index offset = below(random, 9);
    switch (below(random, 5)) {
        case 0:
            return {};
        case 1:
            std::ranges::reverse(list);
            break;
        case 2:
            std::ranges::shuffle(list, random);
            break;
        default:
            for (Index& device : list) device = device * stride + offset;
    }
    return list;
}

TEST(TrafficProperty, OfEachKindOfStepThePriceIsWhatSchedulesCarry) {
    int compared = 0;
    check_property(cases(1500), [&] {
        const StepKind kind = *rc::gen::element(StepKind::all_gather, StepKind::all_to_all, StepKind::permute,
                                                StepKind::reduce_scatter, StepKind::all_reduce, StepKind::exchange);
        const Pair pair = *typed_pairs(kind);
        Layout before = layout_of(pair.source);
        Step step{kind, layout_of(pair.target)};
        if (device_count(before) > 96) return;
        Random random(*rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40)));
        before.mesh.devices = step.layout.mesh.devices = random_devices(random, device_count(before));
        compare(before, step, random_machine(random), compared);
    });
    EXPECT_GE(compared, cases(1500) / 2);
}

/// A mesh of a few thousand devices, made from the major axis on.
Mesh large_mesh(Random& random) {
    const std::vector<std::vector<Index>> sizes = {{17, 31, 8}, {64, 4, 17}, {24, 9, 20},
                                                   {3, 172, 8}, {65, 64},    {7, 4, 6, 25}};
    Mesh mesh;
    for (const Index size : sizes[static_cast<std::size_t>(below(random, std::ssize(sizes)))])
        mesh.axes.push_back({"a" + std::to_string(mesh.axes.size()), size});
    return mesh;
}

/// A layout with each axis on some dimension or unused, in any order.
Layout large_layout(const Mesh& mesh, const std::vector<Index>& extents, Random& random) {
    P spec(extents.size());
    std::vector<std::string> axes;
    for (const Axis& axis : mesh.axes) axes.push_back(axis.name);
    std::ranges::shuffle(axes, random);
    for (const std::string& axis : axes)
        if (const auto dim = static_cast<std::size_t>(below(random, std::ssize(extents) + 1)); dim < spec.size())
            spec[dim].axes.push_back(axis);
    return *make_layout(mesh, DType::u8, extents, spec);
}

/// A machine with one or two borders between levels: at axes, or where digits do not tell blocks apart.
Machine large_machine(const Mesh& mesh, bool told, Random& random) {
    Machine machine{"large", {}, 1'000'000'000};
    Index block = 1;
    std::vector<Index> blocks;
    for (auto axis = mesh.axes.rbegin(); axis + 1 != mesh.axes.rend(); ++axis) blocks.push_back(block *= axis->size);
    if (!told) blocks = {1 + below(random, 100)};
    for (const Index one : blocks) machine.levels.push_back({"l", one, 1000, 1'000'000'000, 0, below(random, 2) == 0});
    machine.levels.push_back({"all", index_max, 1000, 1'000'000'000, 0, below(random, 2) == 0});
    return machine;
}

// Beyond 4096 devices no single transfer is counted.
TEST(TrafficProperty, OfManyDevicesThePriceIsWhatSchedulesCarry) {
#ifdef __SANITIZE_ADDRESS__
    constexpr int count = 1;  // each takes twenty seconds
#else
    const int count = cases(16);
#endif
    int compared = 0;
    int uneven = 0;
    check_property(count, [&] {
        Random random(*rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40)));
        Mesh mesh = large_mesh(random);
        if (below(random, 3) == 0) {
            std::vector<Index> devices(static_cast<std::size_t>(device_count(mesh)));
            for (std::size_t i = 0; i < devices.size(); ++i)
                devices[i] = std::ssize(devices) - 1 - static_cast<Index>(i);
            mesh.devices = devices;
        }
        const std::vector<Index> extents = {1 + below(random, 900), 1 + below(random, 900)};
        const Layout source = large_layout(mesh, extents, random);
        const Layout target = large_layout(mesh, extents, random);
        const bool told = below(random, 4) > 0;
        const Machine machine = large_machine(mesh, told, random);
        for (const StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::exchange}) {
            const Step step{kind, target};
            const auto move = type_step(source, step);
            if (!move || move->messages > 70) continue;
            const Network network = network_of(machine, device_count(mesh));
            const Traffic stated = traffic_of(source, step, *move, machine, network);
            const Counted truth = counted(source, step, machine, network);
            RC_LOG() << "mesh " << format(mesh) << "\n"
                     << format(source) << " " << name(kind) << " " << format(target) << "\n"
                     << format(machine) << "stated " << rc::toString(stated.elements) << ", carried "
                     << rc::toString(truth.elements);
            for (std::size_t i = 0; i < truth.elements.size(); ++i) {
                RC_ASSERT(stated.elements[i] >= truth.elements[i]);
                RC_ASSERT(stated.elements[i] <= truth.elements[i] + truth.elements[i] / 100);
            }
            ++compared;
            uneven += divides(source) && divides(target) ? 0 : 1;
        }
    });
    EXPECT_GE(compared, count / 3);
    EXPECT_GE(uneven, count / 4);
}

}  // namespace
}  // namespace reshard::test
