// Fills of halos by rows: a loop of memcpy carries them out, and every cell is compared with the oracle of the fills.
#include "reshard/halo/rows.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/halos/drawn.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using namespace conformance;
using Cells = std::vector<std::int32_t>;
using Rounds = std::vector<std::vector<Row>>;

// The number of the element in each cell; -1 in all cells that are not of the block.
Cells block_only(const DrawnLayout& layout, Index device) {
    const std::vector<Index> all = array_of(layout, device);
    const std::vector<bool> inside = block_of(layout, device);
    Cells cells;
    for (std::size_t i = 0; i < all.size(); ++i) cells.push_back(inside[i] ? static_cast<std::int32_t>(all[i]) : -1);
    return cells;
}

void carry_out(const Row& row, const Cells& from, Cells& to) {
    const auto* const source = reinterpret_cast<const std::byte*>(from.data());
    auto* const target = reinterpret_cast<std::byte*>(to.data());
    for (Index run = 0; run < row.runs; ++run) {
        const Index begin = row.source_offset + run * row.source_stride,
                    end = row.target_offset + run * row.target_stride;
        ASSERT_GE(begin, 0);
        ASSERT_GE(end, 0);
        ASSERT_LE(begin + row.run_bytes, std::ssize(from) * 4);
        ASSERT_LE(end + row.run_bytes, std::ssize(to) * 4);
        std::memmove(target + end, source + begin, static_cast<std::size_t>(row.run_bytes));
    }
}

std::vector<Row> with_peer(const std::vector<Row>& rows, Index peer, Index named) {
    std::vector<Row> some;
    for (const Row& row : rows)
        if (row.peer == peer) some.push_back(row), some.back().peer = named;
    return some;
}

void fill_by_rows(Random& random, HaloWay way, bool from_another) {
    const DrawnLayout drawn = draw_layout(random, 8);
    const DrawnLayout other = draw_source(random, drawn);
    const Mesh mesh = parse_mesh(mesh_text(drawn)).value();
    HaloMove move{parse_halo_layout(mesh, text_of(drawn, "i32")).value(), std::nullopt};
    if (from_another) move.source = parse_layout(mesh, text_of(other, "i32")).value();
    SCOPED_TRACE(mesh_text(drawn) + " " + text_of(drawn, "i32") +
                 (from_another ? " from " + text_of(other, "i32") : ""));

    const Index devices = devices_of(drawn);
    std::vector<Cells> arrays, tiles;
    std::vector<Rounds> sent, received;
    for (Index device = 0; device < devices; ++device) {
        Cells& array = arrays.emplace_back(block_only(drawn, device));
        if (from_another) std::ranges::fill(array, -1);
        Cells& tile = tiles.emplace_back();
        for (const Index number : tile_of(other, device)) tile.push_back(static_cast<std::int32_t>(number));
        sent.push_back(halo_rows(move, device, RowSide::send, way).value());
        received.push_back(halo_rows(move, device, RowSide::receive, way).value());
        ASSERT_EQ(sent.back().size(), sent.front().size());
        ASSERT_EQ(received.back().size(), sent.front().size());
    }
    std::vector<Index> bytes(static_cast<std::size_t>(devices));
    for (std::size_t round = 0; round < sent.front().size(); ++round) {
        const std::vector<Cells> before = arrays;
        for (std::size_t device = 0; device < arrays.size(); ++device) {
            const auto rank = static_cast<Index>(device);
            for (const Row& row : received[device][round]) {
                const auto peer = static_cast<std::size_t>(row.peer);
                ASSERT_LT(peer, arrays.size());
                carry_out(row, from_another && round == 0 ? tiles[peer] : before[peer], arrays[device]);
                bytes[device] += row.peer == rank ? 0 : row.run_bytes * row.runs;
            }
            for (Index peer = 0; peer < devices; ++peer)
                EXPECT_EQ(with_peer(sent[static_cast<std::size_t>(peer)][round], rank, peer),
                          with_peer(received[device][round], peer, peer));
        }
    }
    for (Index device = 0; device < devices; ++device) {
        const auto at = static_cast<std::size_t>(device);
        const std::vector<Index> wanted = array_of(drawn, device);
        ASSERT_EQ(arrays[at].size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(arrays[at][i], wanted[i]) << device << " " << i;
        if (from_another) continue;
        EXPECT_EQ(bytes[at], received_elements(move.target, device) * 4);
    }
}

TEST(HaloRows, FillInPlace) {
    Random random(20261126);
    for (int i = 0; i < (long_run() ? 10000 : 300); ++i) {
        fill_by_rows(random, HaloWay::at_once, false);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
}

TEST(HaloRows, FillDimensionByDimension) {
    Random random(20261127);
    for (int i = 0; i < (long_run() ? 10000 : 200); ++i) {
        fill_by_rows(random, HaloWay::by_dimension, false);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
}

TEST(HaloRows, FillFromAnotherLayout) {
    Random random(20261128);
    for (int i = 0; i < (long_run() ? 10000 : 200); ++i) {
        fill_by_rows(random, HaloWay::at_once, true);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
}

TEST(HaloRows, AreFew) {
    const Mesh mesh = parse_mesh("x=4").value();
    const HaloMove move{parse_halo_layout(mesh, "f64[64@x~1%,8]").value(), std::nullopt};
    const Rounds rounds = halo_rows(move, 1, RowSide::receive).value();
    ASSERT_EQ(rounds.size(), 1U);
    const std::vector<Row> rows = {{0, 0, 1024, 0, 64, 1, 0, 0}, {0, 2, 64, 1088, 64, 1, 0, 0}};
    EXPECT_EQ(rounds.front(), rows);
    EXPECT_TRUE(halo_rows(move, 9).value().front().empty());
    HaloMove wrong = move;
    wrong.target.halos.front().before = -1;
    EXPECT_EQ(halo_rows(wrong, 0).error().code, Code::layout);
}

}  // namespace
}  // namespace reshard::test
