// Other people's notations: what is written is read back as the same layout, and means what its own rules say.
#include <fmt/format.h>

#include "reshard/notation.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

Setting setting_of(const Layout& layout) { return {layout.mesh, layout.dtype, shape(layout)}; }

// The same devices in another order, for some layouts.
Layout shuffled(Layout layout) {
    const Index devices = device_count(layout);
    if (*between(0, 2) == 0 || devices > 48) return layout;
    std::vector<Index> order;
    for (Index i = 0; i < devices; ++i) order.push_back(i);
    for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[*between<std::size_t>(0, i + 1)]);
    layout.mesh.devices = DeviceList(order);
    return layout;
}

TEST(NotationProperty, WhatIsWrittenIsReadBack) {
    std::array<int, all_notations.size()> written{};
    check_property(cases(400), [&] {
        const Layout layout = shuffled(layout_of(*layouts({.devices_max = 64})));
        for (std::size_t i = 0; i < all_notations.size(); ++i) {
            const Notation notation = all_notations[i];
            const auto text = format(notation, layout);
            if (!text) {
                RC_ASSERT(name(text.error().code) == name(Code::unsupported));
                continue;
            }
            ++written[i];
            RC_LOG(*text);
            const auto back = parse_layout(notation, setting_of(layout), *text);
            if (!back) RC_LOG(describe(back.error()));
            RC_ASSERT(back.has_value());
            for (Index device = 0; device < device_count(layout); ++device) {
                RC_ASSERT(tile(*back, device) == tile(layout, device));
                RC_ASSERT(summand(*back, device) == summand(layout, device));
            }
            RC_ASSERT(back->unreduced.empty() || back->reduction == layout.reduction);
        }
    });
    for (std::size_t i = 0; i < written.size(); ++i) EXPECT_GE(written[i], cases(400) / 8) << name(all_notations[i]);
}

// XLA's rule, from the fields: tile number t (row-major) is on the t-th device of the list.
TEST(NotationProperty, AnHloShardingMeansItsDeviceList) {
    check_property(cases(400), [] {
        const Layout layout = shuffled(layout_of(*layouts({.devices_max = 64})));
        const auto text = format(Notation::hlo, layout);
        if (!text) return;
        const HloSharding sharding = *parse_hlo(*text);
        if (sharding.kind != HloSharding::Kind::tiled) return;
        std::vector<Index> devices = sharding.devices;
        if (devices.empty()) {  // arange(N).reshape(shape).transpose(T).flatten()
            std::vector<Index> order = sharding.transpose;
            if (order.empty()) order = {0};
            std::vector<Index> at(order.size(), 0);
            for (Index t = 0; t < device_count(layout); ++t) {
                std::vector<Index> index(order.size());
                for (std::size_t i = 0; i < order.size(); ++i) index[static_cast<std::size_t>(order[i])] = at[i];
                Index device = 0;
                for (std::size_t i = 0; i < index.size(); ++i) device = device * sharding.reshape[i] + index[i];
                devices.push_back(device);
                for (std::size_t i = order.size(); i-- > 0;) {
                    if (++at[i] < sharding.reshape[static_cast<std::size_t>(order[i])]) break;
                    at[i] = 0;
                }
            }
        }
        for (Index t = 0; t < device_count(layout); ++t) {
            Index rest = t;
            std::vector<Index> at(sharding.tiles.size());
            for (std::size_t i = at.size(); i-- > 0; rest /= sharding.tiles[i]) at[i] = rest % sharding.tiles[i];
            Box box;
            for (std::size_t i = 0; i < layout.dims.size(); ++i) {
                const Index extent = layout.dims[i].extent;
                const Index size = (extent + sharding.tiles[i] - 1) / sharding.tiles[i];
                box.push_back({std::min(extent, at[i] * size), std::min(extent, (at[i] + 1) * size)});
            }
            RC_ASSERT(count(tile(layout, devices[static_cast<std::size_t>(t)])) == count(box));
            if (count(box) > 0) RC_ASSERT(tile(layout, devices[static_cast<std::size_t>(t)]) == as_tile(box));
        }
    });
}

// torch.chunk on each axis in turn, on lists of row numbers.
std::vector<Index> chunk(const std::vector<Index>& rows, Index chunks, Index which, Index split) {
    const auto total = static_cast<Index>(rows.size());
    const Index size = (total + chunks * split - 1) / (chunks * split);
    std::vector<Index> part;
    for (Index k = which; k < chunks * split; k += chunks)
        for (Index i = k * size; i < std::min(total, (k + 1) * size); ++i)
            part.push_back(rows[static_cast<std::size_t>(i)]);
    return part;
}

TEST(NotationProperty, PlacementsMeanTorchChunkAxisByAxis) {
    int strided = 0;
    check_property(cases(600), [&] {
        Mesh mesh;
        for (int i = *between(1, 4); i > 0; --i) mesh.axes.push_back({fmt::format("d{}", i), *between<Index>(1, 5)});
        const auto rows = *between<Index>(0, 40);
        std::string text;
        std::vector<std::pair<Index, Index>> cutters(mesh.axes.size(), {0, 0});  // split; 0: not sharded
        for (std::size_t i = 0; i < cutters.size(); ++i) {
            const Index split = *between<Index>(0, 4);
            cutters[i] = {split, 0};
            text += i > 0 ? ", " : "";
            text += split == 0 ? "R" : split == 1 ? "S(0)" : fmt::format("_StridedShard(dim=0, sf={})", split);
        }
        RC_LOG(text);
        const auto layout = parse_layout(Notation::dtensor, {mesh, DType::i32, {rows}}, text);
        if (!layout) {
            RC_LOG(describe(layout.error()));
            RC_ASSERT(name(layout.error().code) == name(Code::unsupported));
            return;
        }
        for (Index device = 0; device < device_count(mesh); ++device) {
            std::vector<Index> held;
            for (Index row = 0; row < rows; ++row) held.push_back(row);
            Index inner = device_count(mesh);
            for (std::size_t i = 0; i < cutters.size(); ++i) {
                inner /= mesh.axes[i].size;
                const Index coordinate = device / inner % mesh.axes[i].size;
                if (cutters[i].first > 0) held = chunk(held, mesh.axes[i].size, coordinate, cutters[i].first);
                strided += cutters[i].first > 1;
            }
            const Tile mine = tile(*layout, device);
            RC_ASSERT(count(mine) == static_cast<Index>(held.size()));
            for (std::size_t i = 0; i < held.size(); ++i) RC_ASSERT(mine[0].at(static_cast<Index>(i)) == held[i]);
        }
    });
    EXPECT_GT(strided, 0);
}

TEST(NotationProperty, AnyTextIsReadOrRefusedWhereItIsWrong) {
    constexpr std::string_view alphabet = "{}[](),=<>'\"0123456789xyTSPR:?_ @";
    check_property(cases(600), [&] {
        const Layout layout = layout_of(*layouts({.devices_max = 24}));
        const Notation notation = all_notations[*between<std::size_t>(0, all_notations.size())];
        auto text = format(notation, layout).value_or("{devices=[2,1]<=[2]}");
        for (int edits = *between(1, 4); edits > 0 && !text.empty(); --edits) {
            const auto place = *between<std::size_t>(0, text.size());
            const char byte = alphabet[*between<std::size_t>(0, alphabet.size())];
            if (*between(0, 2) == 0)
                text[place] = byte;
            else
                text.insert(place, 1, byte);
        }
        const auto read = parse_layout(notation, setting_of(layout), text);
        if (read) {
            RC_ASSERT(validate(*read).has_value());
        } else {
            RC_ASSERT(!read.error().message.empty());
            RC_ASSERT(read.error().offset <= text.size());
        }
    });
}

}  // namespace
}  // namespace reshard::test
