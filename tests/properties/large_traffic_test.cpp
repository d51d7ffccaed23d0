// Above the limit for counting single transfers, the price is never less than what the schedules carry, and at most 1%
// more.
#include <algorithm>
#include <numeric>
#include <random>

#include "properties/transfers.hpp"
#include "reshard/planner/cost.hpp"
#include "reshard/planner/schedule.hpp"
#include "reshard/text.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Random = std::mt19937_64;

Index some(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }
Index drawn(Random& random, Index first, Index last) { return first + some(random, last - first + 1); }

/// A mesh of one to three axes.
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

/// The devices of a mesh in order, with an offset, with gaps, reversed, or with their rows in any order.
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
            dim = block_cyclic(dim.extent, dim.atoms, drawn(random, 1, 1 + tile_extent(dim)));
            continue;
        }
        std::vector<Index> shares(static_cast<std::size_t>(shards));
        for (Index left = dim.extent; left > 0;) {
            const Index share = std::min(left, drawn(random, 1, 2 * tile_extent(dim)));
            shares[static_cast<std::size_t>(some(random, shards))] += share;
            left -= share;
        }
        dim = with_shard_sizes(dim.atoms, shares);
    }
    return layout;
}

/// Two or three levels. Their blocks nest in each other but not in the mesh.
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

/// An exchange between two meshes or on one mesh, or a collective.
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
    // A collective from the source to any layout.
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
    std::array<int, 3> kinds{};  // between meshes, on one mesh, collectives
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
    for (const int kind : kinds) EXPECT_GE(kind, count / 50);
}

// The count of transfers above equals the schedules, for sizes at which all schedules can be made.
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
