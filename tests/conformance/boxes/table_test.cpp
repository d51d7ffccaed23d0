// Tables of boxes without a backend: the index against a scan, counts beyond 32 bits, and prices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reshard/boxes/boxes.hpp"
#include "src/boxes/box_index.hpp"
#include "support/property.hpp"
#include "support/random_bytes.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Random;

Box draw_box(Random& random, std::size_t dims, Index first, Index extent) {
    Box box;
    for (std::size_t k = 0; k < dims; ++k) {
        const Index begin = first + below(random, extent);
        box.push_back({begin, begin + below(random, 1 + extent / 8)});
    }
    return box;
}

TEST(BoxIndex, FindsWhatAScanFinds) {
    Random random(test::drawn_seed());
    for (int round = 0; round < test::cases(60); ++round) {
        const auto dims = static_cast<std::size_t>(below(random, 5));
        const Index first = below(random, 2) == 0 ? 0 : Index{1} << 61;
        const Index extent = below(random, 2) == 0 ? 40 : Index{1} << 60;
        std::vector<Box> boxes(static_cast<std::size_t>(below(random, 300)));
        for (Box& box : boxes) box = draw_box(random, dims, first, extent);
        std::vector<NumberedBox> all;
        for (const Box& box : boxes) all.push_back({below(random, 7), std::ssize(all), &box});
        const BoxIndex index(all, dims);
        for (int query = 0; query < 20; ++query) {
            const Box looked = draw_box(random, dims, first, extent);
            std::vector<std::pair<Index, Index>> expected;
            for (const NumberedBox& one : all) {
                bool meets = true;
                for (std::size_t k = 0; k < dims; ++k)
                    meets = meets &&
                            std::max((*one.box)[k].begin, looked[k].begin) < std::min((*one.box)[k].end, looked[k].end);
                if (meets) expected.emplace_back(one.rank, one.number);
            }
            std::ranges::sort(expected);
            std::vector<std::pair<Index, Index>> found;
            for (const CommonBox& one : index.overlapping(looked)) found.emplace_back(one.rank, one.number);
            ASSERT_EQ(found, expected) << "round " << round << ", query " << query;
        }
    }
}

TEST(BoxTable, CountsBytesBeyond32Bits) {
    const Index rows = Index{1} << 33;
    const BoxTable table{
        DType::f64, {rows, 8}, {{{{{0, rows}, {0, 8}}}, {}}, {{}, {{{0, rows}, {0, 8}}, {{rows - 1, rows}, {0, 8}}}}}};
    ASSERT_TRUE(validate(table));
    const std::vector<BoxTraffic> traffic = traffic_of(table);
    EXPECT_EQ(traffic[0], (BoxTraffic{0, rows * 64, 0, 0, 1}));
    EXPECT_EQ(traffic[1], (BoxTraffic{rows * 64, 0, 64, 1, 0}));
    const BoxTable huge{DType::f64, {index_max, 2}, {{{}, {}}}};
    const auto valid = validate(huge);
    ASSERT_FALSE(valid);
    EXPECT_EQ(valid.error().code, Code::overflow);
}

// Two nodes of two devices. Inside a node 1 byte takes 1 ps, between nodes 10 ps, and a message 1000 ps.
Machine two_nodes() {
    return parse_machine(
               "machine pair\n"
               "level inside devices 2 message 0 ps bandwidth 1 TB/s\n"
               "level between devices all message 1000 ps bandwidth 100 GB/s\n"
               "copy 1 TB/s\n")
        .value();
}

TEST(BoxTable, IsPricedByTheBusiestDeviceOfEachLevel) {
    BoxTable table{DType::u8, {4, 100}, {}};
    for (Index rank = 0; rank < 4; ++rank) table.ranks.push_back({{{{rank, rank + 1}, {0, 100}}}, {}});
    table.ranks[0].want = {{{1, 2}, {0, 100}}};  // inside the node
    EXPECT_EQ(exchange_picoseconds(table, two_nodes()), 100 + 100);
    table.ranks[3].want = {{{0, 2}, {0, 30}}};  // from both devices of the other node
    EXPECT_EQ(exchange_picoseconds(table, two_nodes()), 100 + 100 + (2 * 1000 + 600));
    EXPECT_EQ(describe(table, two_nodes()),
              "4 boxes are owned and 2 wanted by 4 ranks; 160 B move in one round\n"
              "rank 0 receives most: 100 B from 1 ranks, the least that any protocol "
              "brings it; about 0.0028 us on pair\n");
}

}  // namespace
}  // namespace reshard::conformance
