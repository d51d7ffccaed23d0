// Traffic between nodes, cut into messages. Both ends cut equally, whatever their storages. Small transfers share
// messages, and nothing is staged unnecessarily. Every process checks the channels of all ranks.
#include "backends/mpi/messages/channel.hpp"
#include "src/schedule/box_cut.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "conformance/move.hpp"

namespace reshard::mpi {
namespace {

using conformance::Item;
using conformance::plan_of;
using conformance::Style;
using Random = std::mt19937_64;

constexpr Index all_ranks = 6;
constexpr Index ample = Index{1} << 19;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

TEST(Channels, ACutCoversTheBoxInOrder) {
    Random random(1);
    for (int trial = 0; trial < 2000; ++trial) {
        Box box(static_cast<std::size_t>(below(random, 5)));
        for (Interval& side : box) {
            side.begin = below(random, 9);
            side.end = side.begin + 1 + below(random, 7);
        }
        const Index most = below(random, 40);
        Index next = 0;  // the number, in row-major order, of the first element that is not covered
        for (const Box& part : slabs(box, most)) {
            Index first = 0;
            Index last = 0;
            for (std::size_t k = 0; k < box.size(); ++k) {
                first = first * box[k].size() + part[k].begin - box[k].begin;
                last = last * box[k].size() + part[k].end - 1 - box[k].begin;
            }
            ASSERT_EQ(first, next);
            ASSERT_EQ(last - first + 1, count(part));
            ASSERT_LE(count(part), std::max<Index>(most, 1));
            next = last + 1;
        }
        ASSERT_EQ(next, count(box));
    }
}

// The first step of each item on one rank, and its channels.
struct Travel {
    std::vector<RankPlan> plans;
    std::vector<Channel> channels;
    Index staged_bytes = 0;

    Travel(const std::vector<Item>& items, Index rank, Index ranks_per_node, Framing framing) {
        for (const Item& item : items) plans.push_back(*lower(item.plan, rank, storages_of(item, rank)));
        std::vector<ChannelStep> steps;
        for (std::size_t i = 0; i < plans.size(); ++i) {
            steps.push_back({i, &plans[i].steps.front(), size_of(sent_dtype(plans[i].steps.front()))});
        }
        NodeMap nodes;
        for (Index peer = 0; peer < all_ranks; ++peer) {
            if (peer / ranks_per_node == rank / ranks_per_node) nodes.members.push_back(peer);
        }
        channels = *make_channels(steps, nodes, framing, staged_bytes);
    }
};

using Lengths = std::map<std::pair<Index, Index>, std::vector<Index>>;  // of messages, by sender and receiver

std::vector<Item> mixed_items() {
    std::vector<Item> items;
    for (const Style style : conformance::all_styles) {
        items.push_back({*plan_of("x=2,y=3", "f32[13@x,7]", StepKind::exchange, "f32[13,7@(x,y)]"), style});
        items.push_back(
            {*plan_of("x=2,y=3", "c128[5@y,9,4]", StepKind::exchange, "c128[5,9@x,4]"), Style::row_major, style});
        items.push_back({*plan_of("x=2,y=3", "u8[30@(y,x)]", StepKind::all_gather, "u8[30@y]"), style, style});
    }
    return items;
}

TEST(Channels, BothEndsCutAlike) {
    for (const Index per_node : {1, 2, 3}) {
        for (const Index piece : {Index{0}, Index{16}, Index{100}, Index{1000}, ample}) {
            SCOPED_TRACE(fmt::format("{} ranks a node, pieces of {} bytes", per_node, piece));
            Lengths sent;
            Lengths received;
            for (Index rank = 0; rank < all_ranks; ++rank) {
                const Travel travel(mixed_items(), rank, per_node, {piece});
                for (const Channel& channel : travel.channels) {
                    EXPECT_NE(channel.peer / per_node, rank / per_node);
                    std::vector<Index>& lengths =
                        channel.sends ? sent[{rank, channel.peer}] : received[{channel.peer, rank}];
                    for (const Packet& part : channel.pieces) lengths.push_back(part.bytes);
                }
                EXPECT_LE(travel.staged_bytes,
                          static_cast<Index>(travel.channels.size() * channel_slots) * ceil_divide(piece, 64) * 64);
            }
            EXPECT_FALSE(sent.empty());
            EXPECT_EQ(sent, received);
        }
    }
}

// The plan with a cast before its only step, or behind it.
Plan with_cast(Plan plan, DType to, bool before) {
    Step& step = plan.steps.front();
    Step cast{StepKind::cast, before ? plan.source : plan.target};
    cast.layout.dtype = plan.target.dtype = to;
    if (before) step.layout.dtype = to;
    plan.steps.insert(before ? plan.steps.begin() : plan.steps.end(), cast);
    return plan;
}

// The sender casts if that narrows, the receiver if it widens. The end that casts packs, whatever the framing.
TEST(Channels, CastsTravelInTheNarrowerType) {
    const Plan narrow =
        with_cast(*plan_of("x=2,y=3", "f32[13@x,7]", StepKind::exchange, "f32[13,7@(x,y)]"), DType::bf16, true);
    const Plan wide =
        with_cast(*plan_of("x=2,y=3", "bf16[13@x,7]", StepKind::exchange, "bf16[13,7@(x,y)]"), DType::f32, false);
    for (const Plan& plan : {narrow, wide}) {
        for (const Index piece : {Index{0}, Index{16}, Index{100}, ample}) {
            SCOPED_TRACE(fmt::format("from {}, pieces of {} bytes", name(plan.source.dtype), piece));
            const bool sender_casts = plan.source.dtype == DType::f32;
            Lengths sent;
            Lengths received;
            for (Index rank = 0; rank < all_ranks; ++rank) {
                const Travel travel({{plan, Style::row_major, Style::row_major}}, rank, 1, {piece});
                Index bytes = 0;
                for (const Channel& channel : travel.channels) {
                    auto& lengths = channel.sends ? sent[{rank, channel.peer}] : received[{channel.peer, rank}];
                    for (const Packet& part : channel.pieces) {
                        lengths.push_back(part.bytes);
                        bytes += channel.sends ? part.bytes : 0;
                        EXPECT_TRUE(channel.sends != sender_casts || !part.copies.empty());
                    }
                }
                Index elements = 0;
                for (const Transfer& send : travel.plans[0].steps.front().schedule.sends) elements += count(send.box);
                EXPECT_EQ(bytes, 2 * elements);
            }
            EXPECT_FALSE(sent.empty());
            EXPECT_EQ(sent, received);
        }
    }
}

TEST(Channels, SmallTensorsShareMessages) {
    const std::vector<Item> items(300, {*plan_of("x=6", "f32[12@x,12]", StepKind::exchange, "f32[12,12@x]")});
    const Travel travel(items, 1, 1, {ample});
    ASSERT_EQ(travel.channels.size(), 2 * (all_ranks - 1));
    for (const Channel& channel : travel.channels) {
        ASSERT_EQ(channel.pieces.size(), 1U);
        EXPECT_EQ(channel.pieces.front().bytes, 300 * 4 * 4);
        EXPECT_EQ(channel.pieces.front().copies.size(), 300U);
    }
}

// Blocks of rows are runs at both ends. Blocks of columns are not runs in a row-major target.
TEST(Channels, RunsStayWhereTheyAre) {
    const Item rows{*plan_of("x=6", "f32[6@x,4096]", StepKind::all_gather, "f32[6,4096]")};
    EXPECT_EQ(Travel({rows}, 0, 1, {ample}).staged_bytes, 0);
    EXPECT_EQ(Travel({rows}, 0, 1, {4096}).staged_bytes, 0);  // not even in pieces
    const Item columns{*plan_of("x=6", "f32[4,6144@x]", StepKind::all_gather, "f32[4,6144]")};
    const Travel travel({columns}, 0, 1, {ample});
    EXPECT_GT(travel.staged_bytes, 0);
    for (const Channel& channel : travel.channels) EXPECT_EQ(channel.pieces.front().copies.empty(), channel.sends);
}

}  // namespace
}  // namespace reshard::mpi
