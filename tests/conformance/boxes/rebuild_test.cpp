// Rebuilds from the replicas that are left: random losses, against an oracle that looks at each element, and errors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "conformance/drawn_cases.hpp"
#include "conformance/halos/drawn.hpp"
#include "conformance/harness.hpp"
#include "reshard/boxes/rebuild.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Random;

// A loss: the source is on devices 0, 1, ... in order. The target is on any devices.
struct DrawnLoss {
    DrawnLayout source;
    DrawnLayout target;
    std::vector<Index> target_devices;  // by position
    std::set<Index> lost;
    std::vector<Index> devices;  // by rank
    RebuildMove move;
};

DrawnLoss draw_loss(Random& random, Index ranks) {
    DrawnLoss drawn;
    drawn.source = draw_source(random, draw_layout(random, ranks));
    for (Index device = 0; device < devices_of(drawn.source); ++device)
        if (below(random, 4) == 0) drawn.lost.insert(device);
    std::vector<Index> able(static_cast<std::size_t>(ranks));
    std::iota(able.begin(), able.end(), 0);
    std::ranges::shuffle(able, random);
    drawn.devices = able;
    // New processes take the place of lost ones in half of the cases.
    if (below(random, 2) == 0) std::erase_if(able, [&](Index device) { return drawn.lost.contains(device); });
    DrawnLayout frame = draw_layout(random, std::max<Index>(std::ssize(able), 1));
    frame.dims = drawn.source.dims;
    drawn.target = draw_source(random, frame);
    able.resize(static_cast<std::size_t>(devices_of(drawn.target)));
    drawn.target_devices = able;
    const Mesh mesh = parse_mesh(mesh_text(drawn.source)).value();
    const Mesh other = parse_mesh(mesh_text(drawn.target)).value();
    drawn.move.source = parse_layout(mesh, text_of(drawn.source, "i32")).value();
    drawn.move.target = parse_layout(Mesh(other.axes, able), text_of(drawn.target, "i32")).value();
    return drawn;
}

std::string describe(const DrawnLoss& drawn) {
    return fmt::format("{} {} to {} {} on {}, lost {}", mesh_text(drawn.source), text_of(drawn.source, "i32"),
                       mesh_text(drawn.target), text_of(drawn.target, "i32"), fmt::join(drawn.target_devices, ","),
                       fmt::join(drawn.lost, ","));
}

std::vector<Index> held_by(const DrawnLoss& drawn, Index device) {
    if (device >= devices_of(drawn.source) || drawn.lost.contains(device)) return {};
    return tile_of(drawn.source, device);
}

std::vector<Index> wanted_by(const DrawnLoss& drawn, Index device) {
    const auto found = std::ranges::find(drawn.target_devices, device);
    if (found == drawn.target_devices.end()) return {};
    return tile_of(drawn.target, found - drawn.target_devices.begin());
}

// The number of elements that are left somewhere.
std::size_t elements_left(const DrawnLoss& drawn) {
    std::set<Index> left;
    for (Index device = 0; device < devices_of(drawn.source); ++device)
        for (const Index element : held_by(drawn, device)) left.insert(element);
    return left.size();
}

std::size_t elements_of(const DrawnLoss& drawn) {
    std::size_t elements = 1;
    for (const DrawnDim& dim : drawn.source.dims) elements *= static_cast<std::size_t>(dim.extent);
    return elements;
}

Index least_received(const DrawnLoss& drawn, Index device) {
    const std::vector<Index> held = held_by(drawn, device);
    return std::ranges::count_if(wanted_by(drawn, device),
                                 [&](Index element) { return !std::ranges::binary_search(held, element); });
}

// The holders of the device's tile that are left share what others want of it.
Index most_sent(const DrawnLoss& drawn, Index device) {
    const std::vector<Index> tile = held_by(drawn, device);
    Index holders = 0;
    Index wanted = 0;
    for (Index other = 0; other < std::ssize(drawn.devices); ++other) {
        if (!tile.empty() && held_by(drawn, other) == tile) {
            ++holders;
            continue;
        }
        for (const Index element : wanted_by(drawn, other)) wanted += std::ranges::binary_search(tile, element) ? 1 : 0;
    }
    return holders == 0 ? 0 : (wanted + holders - 1) / holders;
}

void expect_right(Backend& backend, const DrawnLoss& drawn) {
    const Index device = drawn.devices[static_cast<std::size_t>(backend.rank())];
    const std::vector<Index> lost(drawn.lost.begin(), drawn.lost.end());
    auto rebuild = Rebuild::prepare(std::span(&drawn.move, 1), lost, backend, drawn.devices);
    if (elements_left(drawn) < elements_of(drawn)) {
        ASSERT_FALSE(rebuild);
        EXPECT_EQ(rebuild.error().code, Code::infeasible) << rebuild.error().message;
        return;
    }
    ASSERT_TRUE(rebuild) << rebuild.error().message;
    EXPECT_EQ(rebuild->traffic().received_bytes, 4 * least_received(drawn, device));
    EXPECT_LE(rebuild->traffic().sent_bytes, 4 * most_sent(drawn, device));
    const auto traffic = rebuild_traffic(drawn.move, lost);
    ASSERT_TRUE(traffic) << traffic.error().message;
    if (device < std::ssize(*traffic)) {
        EXPECT_EQ((*traffic)[static_cast<std::size_t>(device)], rebuild->traffic());
    }
    std::vector<int> held;
    for (const Index element : held_by(drawn, device)) held.push_back(static_cast<int>(7 * element + 3));
    std::vector<int> expected;
    for (const Index element : wanted_by(drawn, device)) expected.push_back(static_cast<int>(7 * element + 3));
    std::vector<int> rebuilt(expected.size(), -1);
    const Buffers buffers{std::as_bytes(std::span(held)), std::as_writable_bytes(std::span(rebuilt)), {}};
    const auto done = rebuild->run(std::span(&buffers, 1));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(rebuilt, expected);
}

TEST(Rebuild, EveryElementComesFromAReplicaThatIsLeft) {
    const auto cases = draw_cases([](Random& random) { return draw_loss(random, harness().ranks()); });
    const std::vector<DrawnLoss>& all = cases.all;
    const auto whole = std::ranges::count_if(
        all, [](const DrawnLoss& drawn) { return !drawn.lost.empty() && elements_left(drawn) == elements_of(drawn); });
    if (all.size() >= 50 && harness().ranks() > 1) {
        EXPECT_GE(10 * whole, std::ssize(all)) << "too few losses leave all elements";
    }
    expect_each(cases, expect_right);
}

TEST(Rebuild, LostBoxesAreNamed) {
    const Mesh mesh{{"x", 4}, {"copy", 2}};
    const RebuildMove move{parse_layout(mesh, "f32[64@x,8]").value(), parse_layout(mesh, "f32[64,8@x]").value()};
    ASSERT_TRUE(rebuild_traffic(move, std::vector<Index>{1, 2, 7}));
    const auto traffic = rebuild_traffic(move, std::vector<Index>{7, 6, 1});
    ASSERT_FALSE(traffic);
    EXPECT_EQ(traffic.error().message,
              "only lost devices held [48:64, 0:8] of f32[64@x,8]; the devices 1, 6, 7 are lost");
}

TEST(Rebuild, DevicesThatAreNoRanksAreRefused) {
    harness().on_every_rank([&](Backend& backend) {
        const Mesh more{{"x", backend.size() + 1}};
        const Layout layout = parse_layout(more, fmt::format("f32[{}@x]", backend.size() + 1)).value();
        const RebuildMove move{layout, layout};
        auto made = Rebuild::prepare(std::span(&move, 1), {}, backend);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().message, fmt::format("device {} holds a tile of {}, and no rank is this device",
                                                    backend.size(), format(layout)));
    });
}

// A replica that is left is enough, at 1,024 devices. The sums tell whether each device gets what it wants.
TEST(Rebuild, TrafficOf1024DevicesWithAndWithoutLosses) {
    Random random(test::drawn_seed());
    for (const Index copies : {2, 4, 8}) {
        const Mesh mesh{{"x", 1024 / copies}, {"copy", copies}};
        const RebuildMove move{parse_layout(mesh, "f32[8192@x,64]").value(),
                               parse_layout(mesh, "f32[8192@copy,64@x]").value()};
        std::set<Index> lost;
        while (lost.size() < 20) lost.insert(below(random, 1024));
        bool all_left = true;
        for (Index tile = 0; tile < 1024 / copies; ++tile) {
            Index left = 0;
            for (Index copy = 0; copy < copies; ++copy) left += lost.contains(tile * copies + copy) ? 0 : 1;
            all_left = all_left && left > 0;
        }
        const auto traffic = rebuild_traffic(move, std::vector<Index>(lost.begin(), lost.end()));
        ASSERT_EQ(traffic.has_value(), all_left);
        if (!traffic) continue;
        Index received = 0;
        Index sent = 0;
        for (const BoxTraffic& device : *traffic) {
            received += device.received_bytes;
            sent += device.sent_bytes;
        }
        EXPECT_EQ(received, sent);
        for (const Index device : lost) EXPECT_EQ((*traffic)[static_cast<std::size_t>(device)].sent_bytes, 0);
    }
}

}  // namespace
}  // namespace reshard::conformance
