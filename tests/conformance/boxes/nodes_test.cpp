// Moves through nodes: random layouts on a backend, against an oracle that looks at each element, bounds, and errors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "conformance/drawn_cases.hpp"
#include "conformance/halos/drawn.hpp"
#include "conformance/harness.hpp"
#include "reshard/boxes/nodes.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Random;

// A move between two layouts on any of the ranks, in any order.
struct DrawnMove {
    DrawnLayout source;
    DrawnLayout target;
    std::vector<Index> source_devices;  // by position
    std::vector<Index> target_devices;
    Layout from;
    Layout to;
    NodeWay way;
};

Layout placed(const DrawnLayout& drawn, const std::vector<Index>& devices) {
    const Mesh mesh = parse_mesh(mesh_text(drawn)).value();
    return parse_layout(Mesh(mesh.axes, devices), text_of(drawn, "i32")).value();
}

std::vector<Index> some_devices(Random& random, Index ranks, Index count) {
    std::vector<Index> devices(static_cast<std::size_t>(ranks));
    std::iota(devices.begin(), devices.end(), 0);
    std::ranges::shuffle(devices, random);
    devices.resize(static_cast<std::size_t>(count));
    return devices;
}

DrawnMove draw_move(Random& random, Index ranks) {
    DrawnMove drawn;
    drawn.source = draw_source(random, draw_layout(random, ranks));
    DrawnLayout frame = draw_layout(random, ranks);
    frame.dims = drawn.source.dims;
    drawn.target = draw_source(random, frame);
    drawn.source_devices = some_devices(random, ranks, devices_of(drawn.source));
    drawn.target_devices = some_devices(random, ranks, devices_of(drawn.target));
    drawn.from = placed(drawn.source, drawn.source_devices);
    drawn.to = placed(drawn.target, drawn.target_devices);
    drawn.way = {1 + below(random, ranks), below(random, 2) == 1, 1 + below(random, 10)};
    return drawn;
}

std::vector<Index> elements_on(const DrawnLayout& layout, const std::vector<Index>& devices, Index device) {
    const auto found = std::ranges::find(devices, device);
    return found == devices.end() ? std::vector<Index>() : tile_of(layout, found - devices.begin());
}

std::vector<Index> held_by(const DrawnMove& drawn, Index device) {
    return elements_on(drawn.source, drawn.source_devices, device);
}

std::vector<Index> wanted_by(const DrawnMove& drawn, Index device) {
    return elements_on(drawn.target, drawn.target_devices, device);
}

// Elements that a node wants and that none of its devices holds.
Index lacked_by_node(const DrawnMove& drawn, Index node, Index ranks) {
    std::set<Index> lacked;
    const Index end = std::min(ranks, (node + 1) * drawn.way.node_devices);
    for (Index device = node * drawn.way.node_devices; device < end; ++device)
        for (const Index element : wanted_by(drawn, device)) lacked.insert(element);
    for (Index device = node * drawn.way.node_devices; device < end; ++device)
        for (const Index element : held_by(drawn, device)) lacked.erase(element);
    return std::ssize(lacked);
}

void expect_bounds(const DrawnMove& drawn) {
    const auto move = through_nodes({drawn.from, drawn.to}, drawn.way);
    ASSERT_TRUE(move) << move.error().message;
    for (const BoxTable* table : {&move->keep, &move->spread, &move->fetch, &move->share}) {
        const auto valid = validate(*table);
        ASSERT_TRUE(valid) << valid.error().message;
    }
    const std::vector<BoxTraffic> kept = traffic_of(move->keep);
    const std::vector<BoxTraffic> fetched = traffic_of(move->fetch);
    const std::vector<BoxTraffic> shared = traffic_of(move->share);
    const auto ranks = static_cast<Index>(kept.size());
    for (Index node = 0; node * drawn.way.node_devices < ranks; ++node) {
        const Index lacked = lacked_by_node(drawn, node, ranks);
        const Index devices = std::min(drawn.way.node_devices, ranks - node * drawn.way.node_devices);
        Index received = 0;
        for (Index device = node * drawn.way.node_devices; device < node * drawn.way.node_devices + devices; ++device)
            received += fetched[static_cast<std::size_t>(device)].received_bytes / 4;
        EXPECT_EQ(received, lacked) << "node " << node;
    }
    for (Index device = 0; device < ranks; ++device) {
        const auto at = static_cast<std::size_t>(device);
        EXPECT_EQ(kept[at].received_bytes, 0);
        const std::vector<Index> held = held_by(drawn, device);
        const Index missing = std::ranges::count_if(
            wanted_by(drawn, device), [&](Index element) { return !std::ranges::binary_search(held, element); });
        EXPECT_LE(shared[at].received_bytes, 4 * missing) << "device " << device;
    }
}

std::vector<int> values_of(const std::vector<Index>& elements) {
    std::vector<int> values;
    for (const Index element : elements) values.push_back(static_cast<int>(7 * element + 3));
    return values;
}

void expect_right(Backend& backend, const DrawnMove& drawn) {
    auto executor = Executor::prepare_through_nodes(through_nodes({drawn.from, drawn.to}, drawn.way), backend);
    ASSERT_TRUE(executor) << executor.error().message;
    const std::vector<int> held = values_of(held_by(drawn, backend.rank()));
    const std::vector<int> expected = values_of(wanted_by(drawn, backend.rank()));
    for (int run = 0; run < 2; ++run) {
        std::vector<int> moved(expected.size(), -1);
        const auto done = executor->run(std::span<const int>(held), std::span<int>(moved));
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(moved, expected) << "run " << run;
    }
}

Machine two_levels(Index node_devices) {
    return {"two_levels",
            {{"inside", node_devices, 0, 8'000'000'000}, {"outside", index_max, 0, 1'000'000'000}},
            1'000'000'000'000};
}

DrawnCases<DrawnMove> drawn_moves() {
    return draw_cases([](Random& random) { return draw_move(random, harness().ranks()); });
}

std::string describe(const DrawnMove& drawn) {
    return fmt::format("{} on {} to {} on {}, nodes of {}{}", format(drawn.from), fmt::join(drawn.source_devices, ","),
                       format(drawn.to), fmt::join(drawn.target_devices, ","), drawn.way.node_devices,
                       drawn.way.relays ? ", relays" : "");
}

TEST(Nodes, EachNodeFetchesAnElementOnceAndDividesTheWork) {
    const DrawnCases<DrawnMove> cases = drawn_moves();
    for (const DrawnMove& drawn : cases.all) {
        SCOPED_TRACE(describe(drawn));
        expect_bounds(drawn);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Nodes, EveryElementArrives) { expect_each(drawn_moves(), expect_right); }

// On a machine of several levels `redistribute` runs the move that costs less.
TEST(Nodes, RedistributeGoesThroughNodesIfThatIsFaster) {
    std::vector<DrawnMove> all = drawn_moves().all;
    all.resize(std::min<std::size_t>(all.size(), 10));
    harness().on_every_rank([&](Backend& backend) {
        for (const DrawnMove& drawn : all) {
            SCOPED_TRACE(describe(drawn));
            Redistributor mover(backend, {.machine = two_levels(std::max<Index>(drawn.way.node_devices, 2))});
            const std::vector<int> held = values_of(held_by(drawn, backend.rank()));
            const std::vector<int> expected = values_of(wanted_by(drawn, backend.rank()));
            for (int run = 0; run < 2; ++run) {
                std::vector<int> moved(expected.size(), -1);
                const auto done =
                    mover.redistribute(drawn.from, drawn.to, std::span<const int>(held), std::span<int>(moved));
                ASSERT_TRUE(done) << done.error().message;
                EXPECT_EQ(moved, expected) << "run " << run;
            }
            if (testing::Test::HasFailure()) return;
        }
    });
}

// Two nodes of two devices. One exchange brings each element twice into the other node. It has no workspace.
TEST(Nodes, RedistributeStagesWhatANodeShares) {
    if (harness().ranks() != 4) GTEST_SKIP() << "the case has 4 devices";
    const Layout source = parse_layout(Mesh{{"x", 2}}, "i32[64@x,64]").value();
    const Layout target = parse_layout(Mesh({{"y", 3}}, {1, 2, 3}), "i32[64,64]").value();
    const Options options{.machine = two_levels(2)};
    const Synthesis plan = synthesize(source, target, options).value();
    ASSERT_TRUE(faster_through_nodes({source, target}, plan.picoseconds, options));
    EXPECT_FALSE(faster_through_nodes({source, target}, 0, options));
    EXPECT_FALSE(faster_through_nodes({source, target}, plan.picoseconds, {}));
    // Both tiles, and half of the array for a device that fetches it.
    const Index footprint = footprint_bytes(*faster_through_nodes({source, target}, plan.picoseconds, options));
    Options limited = options;
    limited.limits.memory.footprint_bytes_max = footprint;
    EXPECT_TRUE(faster_through_nodes({source, target}, plan.picoseconds, limited));
    limited.limits.memory.footprint_bytes_max = footprint - 1;
    EXPECT_FALSE(faster_through_nodes({source, target}, plan.picoseconds, limited));
    harness().on_every_rank([&](Backend& backend) {
        Redistributor mover(backend, options);
        const std::vector<int> in(tile_count(source, backend.rank()));
        std::vector<int> out(tile_count(target, backend.rank()));
        ASSERT_TRUE(mover.redistribute(source, target, std::span<const int>(in), std::span<int>(out)));
        if (backend.rank() > 1) {
            EXPECT_GT(mover.workspace_bytes(), 0);
        }
        EXPECT_LE(tile_bytes(source) + tile_bytes(target) + mover.workspace_bytes(), footprint);
        Redistributor within(backend, limited);
        ASSERT_TRUE(within.redistribute(source, target, std::span<const int>(in), std::span<int>(out)));
        EXPECT_EQ(within.workspace_bytes(), 0);
    });
}

TEST(Nodes, RanksThatBringOtherMovesAreToldOfIt) {
    if (harness().ranks() < 2) GTEST_SKIP() << "one rank agrees with itself";
    harness().on_every_rank([&](Backend& backend) {
        const Mesh mesh{{"x", backend.size()}};
        const Layout rows = parse_layout(mesh, "i32[24@x,24]").value();
        const Layout columns = parse_layout(mesh, "i32[24,24@x]").value();
        const NodeWay way{backend.rank() == 0 ? 2 : 1};
        auto made = Executor::prepare_through_nodes(through_nodes({rows, columns}, way), backend);
        const std::vector<int> in(tile_count(rows, backend.rank()));
        std::vector<int> out(tile_count(columns, backend.rank()));
        const auto done =
            made ? made->run(std::span<const int>(in), std::span<int>(out)) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch) << done.error().message;
    });
}

TEST(Nodes, DevicesThatAreNoRanksAreRefused) {
    harness().on_every_rank([&](Backend& backend) {
        const Layout more = parse_layout(Mesh{{"x", backend.size() + 1}}, "i32[24@x,24]").value();
        const auto made = Executor::prepare_through_nodes(through_nodes({more, more}, NodeWay{}), backend);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().message,
                  fmt::format("the move has {} devices, the backend has {} ranks", backend.size() + 1, backend.size()));
    });
}

TEST(Nodes, BadQuestionsAreRefused) {
    const Mesh mesh{{"x", 4}};
    const Layout rows = parse_layout(mesh, "f32[8@x,8]").value();
    const Layout sums = parse_layout(mesh, "f32[8,8]{U:x}").value();
    const Layout other = parse_layout(mesh, "f32[8@x,9]").value();
    EXPECT_EQ(through_nodes({rows, rows}, NodeWay{0}).error().message, "a node has 0 devices; at least 1 is needed");
    EXPECT_EQ(through_nodes({sums, rows}, NodeWay{2}).error().code, Code::unsupported);
    EXPECT_EQ(through_nodes({rows, other}, NodeWay{2}).error().code, Code::mismatch);
    EXPECT_EQ(through_nodes({rows, rows}, laptop()).error().code, Code::usage);
    const Mesh many{{"x", 1024}};
    const Problem gather{parse_layout(many, "f32[1024@x]").value(), parse_layout(many, "f32[1024]").value()};
    EXPECT_EQ(through_nodes(gather, NodeWay{8}).error().code, Code::unsupported);
    EXPECT_EQ(through_nodes({rows, rows}, NodeWay{2, true, 0}).error().message,
              "an element between nodes costs as much as 0 within one; 1 to 1024 are supported");
}

// Two nodes of eight devices, each element wanted by all devices. One exchange fetches every element eight times into a
// node, and this move fetches it once.
TEST(Nodes, ThePriceCountsWhatComesIntoANode) {
    const Mesh mesh{{"x", 16}};
    const Layout rows = parse_layout(mesh, "f32[4096@x,256]").value();
    const Layout whole = parse_layout(mesh, "f32[4096,256]").value();
    const Machine machine = make_machine("dgx-h100:nodes=2").value();
    const NodeMove apart = through_nodes({rows, whole}, NodeWay{1}).value();
    const NodeMove together = through_nodes({rows, whole}, machine).value();
    EXPECT_EQ(together.way.node_devices, 8);
    EXPECT_LT(move_picoseconds(together, machine), move_picoseconds(apart, machine));
    constexpr double part = 256 * 256 * 4;
    for (const BoxTraffic& one : traffic_of(together.fetch))
        EXPECT_NEAR(static_cast<double>(one.received_bytes), part, part / 100);
    for (const BoxTraffic& one : traffic_of(apart.fetch)) EXPECT_EQ(one.received_bytes, 15 * 256 * 256 * 4);
}

}  // namespace
}  // namespace reshard::conformance
