// Notations of other projects: the text of a layout reads back as the same layout, and means what the notation's own
// rules say.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/notations/hlo.hpp"
#include "reshard/notations/notation.hpp"
#include "src/layout/flattened.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

NotationContext setting_of(const Layout& layout) { return {layout.mesh, layout.dtype, shape(layout)}; }

// Puts the devices of some layouts into another order.
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

// PyTorch's rules on lists of row numbers. Everything below consists of this one call:
using Rows = std::vector<Index>;

Rows torch_chunk(const Rows& rows, Index chunks, Index which) {
    const auto total = static_cast<Index>(rows.size());
    const Index size = (total + chunks - 1) / chunks;
    return {rows.begin() + std::min(total, which * size), rows.begin() + std::min(total, (which + 1) * size)};
}

// `_StridedShard._split_tensor`: splits the rows into chunks and each chunk into shards, and takes the same shard of
// each.
Rows torch_split(const Rows& rows, Index split, Index shards, Index which) {
    Rows part;
    for (Index k = 0; k < split; ++k) {
        const Rows inner = torch_chunk(torch_chunk(rows, split, k), shards, which);
        part.insert(part.end(), inner.begin(), inner.end());
    }
    return part;
}

// One dimension on a mesh: sizes, and a split per axis, which is 0 if the axis does not shard it.
struct Strided {
    std::vector<Index> sizes;
    std::vector<Index> splits;
    Index rows = 0;
};

Rows all_rows(const Strided& given) {
    Rows rows;
    for (Index row = 0; row < given.rows; ++row) rows.push_back(row);
    return rows;
}

// Cuts from left to right, like compute_local_shape_and_global_offset and distribute_tensor.
Rows left_to_right(const Strided& given, const std::vector<Index>& at) {
    Rows rows = all_rows(given);
    for (std::size_t i = 0; i < at.size(); ++i)
        if (given.splits[i] > 0) rows = torch_split(rows, given.splits[i], given.sizes[i], at[i]);
    return rows;
}

// Cuts in an order of axes, like redistribute and FSDP.
Rows in_order(const Strided& given, const std::vector<std::size_t>& order, const std::vector<Index>& at) {
    Rows rows = all_rows(given);
    for (const std::size_t axis : order)
        if (given.splits[axis] > 0) rows = torch_chunk(rows, given.sizes[axis], at[axis]);
    return rows;
}

std::string placements_of(const Strided& given, std::size_t dim) {
    std::string text;
    for (std::size_t i = 0; i < given.splits.size(); ++i) {
        text += i > 0 ? ", " : "";
        text += given.splits[i] == 0   ? "R"
                : given.splits[i] == 1 ? fmt::format("S({})", dim)
                                       : fmt::format("_StridedShard(dim={}, sf={})", dim, given.splits[i]);
    }
    return text;
}

Mesh mesh_of(const Strided& given) {
    Mesh mesh;
    for (const Index size : given.sizes) mesh.axes.push_back({fmt::format("d{}", mesh.axes.size()), size});
    return mesh;
}

std::vector<Index> coordinates(const Strided& given, Index device) {
    std::vector<Index> at(given.sizes.size());
    for (std::size_t i = at.size(); i-- > 0; device /= given.sizes[i]) at[i] = device % given.sizes[i];
    return at;
}

bool holds(const Side& side, const Rows& rows) {
    if (side.size() != static_cast<Index>(rows.size())) return false;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (side.at(static_cast<Index>(i)) != rows[i]) return false;
    return true;
}

// Splits that state an order of axes, as PyTorch writes them: FSDP over tensor parallel, and deeper nests of it.
TEST(NotationProperty, StridedShardsThatSayAnOrderAreCutInIt) {
    int uneven = 0;
    int disputed = 0;
    check_property(cases(3000), [&] {
        Strided given;
        std::vector<std::size_t> order;
        for (int i = *between(2, 4); i > 0; --i) {
            given.sizes.push_back(*between<Index>(1, 5));
            given.splits.push_back(*between(0, 8) > 0 ? 1 : 0);
            order.push_back(order.size());
        }
        for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[*between<std::size_t>(0, i + 1)]);
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (given.splits[order[i]] > 0 && given.splits[order[j]] > 0 && order[j] > order[i])
                    given.splits[order[i]] *= given.sizes[order[j]];
        given.rows = *between<Index>(0, 60);
        // No axis cuts the other dimension, so that two dimensions are read.
        const auto dim = *between<std::size_t>(0, 2);
        std::vector<Index> extents = {3, 3};
        extents[dim] = given.rows;
        const std::string text = placements_of(given, dim);
        const NotationContext setting{mesh_of(given), DType::i32, extents};
        const auto layout = parse_layout(Notation::dtensor, setting, text);
        RC_LOG(fmt::format("--mesh {} {} rows, {}\n", format(*setting.mesh), given.rows, text));
        RC_ASSERT(layout.has_value());
        bool agree = true;
        for (Index device = 0; device < device_count(*setting.mesh); ++device) {
            const std::vector<Index> at = coordinates(given, device);
            const Rows rows = in_order(given, order, at);
            agree = agree && rows == left_to_right(given, at);
            RC_ASSERT(holds(tile(*layout, device)[dim], rows));
        }
        uneven += has_pieces(*layout) && std::ranges::any_of(given.splits, [](Index split) { return split > 1; });
        disputed += agree ? 0 : 1;
        const auto written = format(Notation::dtensor, *layout);
        RC_ASSERT(written.has_value());
        const auto back = parse_layout(Notation::dtensor, setting, *written);
        RC_ASSERT(back.has_value());
        RC_ASSERT(equivalent(*back, *layout));
    });
    std::printf("%d uneven; %d on which PyTorch's two ways differ\n", uneven, disputed);
    EXPECT_GE(uneven, cases(700));
}

// Any splits, on one axis or several. Splits that state no order are cut from left to right.
TEST(NotationProperty, OtherStridedShardsAreCutLeftToRight) {
    int compared = 0;
    check_property(cases(600), [&] {
        Strided given;
        for (int i = *between(1, 4); i > 0; --i) {
            given.sizes.push_back(*between<Index>(1, 5));
            given.splits.push_back(*between<Index>(0, 7));
        }
        given.rows = *between<Index>(0, 60);
        // No split states an order: no split is a product of sizes of later axes.
        std::vector<Index> products = {1};
        bool says_none = false;
        for (std::size_t i = given.sizes.size(); i-- > 0;) {
            if (given.splits[i] == 0) continue;
            says_none = says_none || std::ranges::find(products, given.splits[i]) == products.end();
            const std::vector<Index> before = products;
            for (const Index product : before) products.push_back(product * given.sizes[i]);
        }
        if (!says_none) return;
        ++compared;
        const std::string text = placements_of(given, 0);
        const NotationContext setting{mesh_of(given), DType::i32, {given.rows}};
        const auto layout = parse_layout(Notation::dtensor, setting, text);
        RC_LOG(fmt::format("--mesh {} {} rows, {}\n", format(*setting.mesh), given.rows, text));
        RC_ASSERT(layout.has_value());
        for (Index device = 0; device < device_count(*setting.mesh); ++device)
            RC_ASSERT(holds(tile(*layout, device)[0], left_to_right(given, coordinates(given, device))));
        const auto written = format(Notation::dtensor, *layout);
        if (!written) return;
        NotationContext again = setting;
        if (const auto flat = unflattened(layout->dims[0])) {  // a RaggedShard, of an array with these dimensions
            again.shape.clear();
            for (const Dim& dim : flat->dims) again.shape.push_back(dim.extent);
        }
        const auto back = parse_layout(Notation::dtensor, again, *written);
        RC_ASSERT(back.has_value());
        RC_ASSERT(equivalent(*back, *layout));
    });
    EXPECT_GE(compared, cases(600) / 2);
}

// RaggedShard: the units of the leading dimensions, laid end to end, go to the devices in turn.
TEST(NotationProperty, RaggedShardsAreWhatTheirUnitsSay) {
    int cut_through = 0;
    check_property(cases(400), [&] {
        const Index devices = *between<Index>(1, 5);
        std::vector<Index> units;
        for (Index i = 0; i < devices; ++i) units.push_back(*between<Index>(0, 4));
        units.front() += std::ranges::all_of(units, [](Index unit) { return unit == 0; }) ? 1 : 0;
        Index sum = 0;
        for (const Index unit : units) sum += unit;
        const auto dims = *between<std::size_t>(1, 3);
        const Index unit = *between<Index>(1, 5);
        // Leading extents with a product of that many units, and one more dimension.
        const std::vector<Index> extents =
            dims == 1 ? std::vector<Index>{sum * unit, 3} : std::vector<Index>{unit, sum, 3};
        const NotationContext setting{Mesh{{"a", devices}, {"b", 2}}, DType::u8, extents};
        const std::string text = fmt::format("(RaggedShard(dims=({}), local_units=({},)), Replicate())",
                                             dims == 1 ? "0," : "0, 1", fmt::join(units, ", "));
        RC_LOG(fmt::format("{} of {}\n", text, fmt::join(extents, ",")));
        const auto layout = parse_layout(Notation::dtensor, setting, text);
        RC_ASSERT(layout.has_value());
        cut_through += layout->dims.size() != extents.size() ? 1 : 0;
        Index before = 0;
        for (Index device = 0; device < 2 * devices; ++device) {
            // The device holds the elements of its units, numbered in the whole array.
            const Index share = units[static_cast<std::size_t>(device / 2)] * unit * 3;
            std::vector<Index> inner(layout->dims.size(), 1);
            for (std::size_t k = inner.size(); k-- > 1;) inner[k - 1] = inner[k] * layout->dims[k].extent;
            const Tile held = tile(*layout, device);
            RC_ASSERT(count(held) == share);
            if (share > 0) RC_ASSERT(held[0].intervals.front().begin * inner[0] == before);
            if (device % 2 == 1) before += share;
        }
        const auto written = format(Notation::dtensor, *layout);
        RC_ASSERT(written.has_value());
        const auto back = parse_layout(Notation::dtensor, setting_of(*layout), *written);
        RC_ASSERT(back.has_value() && equivalent(*back, *layout));
    });
    EXPECT_GE(cut_through, cases(400) / 10);
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
