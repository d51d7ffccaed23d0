// The order of messages: each rank sends first to the peer with the most bytes left, and to equal peers in turn. Also
// the order of the steps of a list, and arrival before one's own messages are taken.
#include "backends/mpi/messages/stage.hpp"
#include "backends/mpi/messages/turns.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "conformance/move.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/notations/notation.hpp"

namespace {

constexpr int message_bytes = 256;
std::vector<int>* told = nullptr;  // receivers of such messages from this process, while a test listens

}  // namespace

// The backend calls this function, which calls MPI's own.
extern "C" int MPI_Isend(const void* at, int count, MPI_Datatype type, int peer, int tag, MPI_Comm communicator,
                         MPI_Request* request) {
    if (told != nullptr && count == message_bytes) told->push_back(peer);
    return PMPI_Isend(at, count, type, peer, tag, communicator, request);
}

namespace reshard::mpi {
namespace {

using conformance::Item;

std::vector<std::size_t> order_of(std::vector<Index> loads) {
    Turns turns;
    for (std::size_t i = 0; i < loads.size(); ++i) turns.add(i, loads[i]);
    std::vector<std::size_t> order;
    while (const auto channel = turns.next()) {
        if (loads[*channel] == 0) continue;
        order.push_back(*channel);
        turns.add(*channel, --loads[*channel]);
        turns.add(*channel, loads[*channel]);  // it has been added already
    }
    return order;
}

TEST(Turns, LargestRemainingFirst) {
    EXPECT_EQ(order_of({2, 2, 2}), (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(order_of({1, 1, 5}), (std::vector<std::size_t>{2, 2, 2, 2, 0, 1, 2}));
    EXPECT_EQ(order_of({0, 3, 2}), (std::vector<std::size_t>{1, 1, 2, 1, 2}));
    EXPECT_TRUE(order_of({}).empty());
    std::mt19937_64 random(1);
    for (int trial = 0; trial < 500; ++trial) {
        std::vector<Index> loads(random() % 9);
        std::vector<std::pair<Index, std::size_t>> wanted;  // minus the load left before each message; its number
        for (std::size_t i = 0; i < loads.size(); ++i) {
            loads[i] = static_cast<Index>(random() % 12);
            for (Index left = 1; left <= loads[i]; ++left) wanted.emplace_back(-left, i);
        }
        std::ranges::sort(wanted);
        const std::vector<std::size_t> order = order_of(loads);
        ASSERT_EQ(order.size(), wanted.size());
        for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], wanted[i].second);
    }
}

// Arrays run turn by turn, then arrays without a turn run alone. An array with no workspace is in the first turn.
TEST(Stages, ArraysOfOneTurnRunTogether) {
    using Turn = std::optional<std::size_t>;
    const std::vector<Turn> turns = {Turn(1), Turn(), Turn(2), Turn(0), Turn(1), Turn(2)};
    const std::vector<std::size_t> steps = {2, 2, 1, 3, 1, 2};
    std::vector<std::vector<StageStep>> arrays(turns.size());
    for (std::size_t i = 0; i < turns.size(); ++i)
        for (std::size_t step = 0; step < steps[i]; ++step) arrays[i].push_back({i, nullptr, step, 0, {}});
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> made;
    for (const auto& stage : stages_of(arrays, turns)) {
        auto& one = made.emplace_back();
        for (const StageStep& step : stage) one.emplace_back(step.array, step.step);
    }
    using Stages = std::vector<std::vector<std::pair<std::size_t, std::size_t>>>;
    EXPECT_EQ(
        made,
        (Stages{{{0, 0}, {3, 0}, {4, 0}}, {{0, 1}, {3, 1}}, {{3, 2}}, {{2, 0}, {5, 0}}, {{5, 1}}, {{1, 0}}, {{1, 1}}}));
}

// Sends this many messages of 256 bytes from rank 0 to each of three others, and returns their order.
std::vector<int> order_of_sends(Backend& backend, const std::string& loads) {
    const Mesh from = parse_mesh("a=1[0]").value();
    const Mesh to = parse_mesh("b=3[1-3]").value();
    std::vector<Index> parts;
    for (std::size_t at = 0; at < loads.size(); at += 2) parts.push_back(loads[at] - '0');
    const Index elements = 64 * std::accumulate(parts.begin(), parts.end(), Index{0});
    std::string ragged;
    for (const Index part : parts) ragged += (ragged.empty() ? "" : ",") + std::to_string(64 * part);
    const Layout source = parse_layout(from, "f32[" + std::to_string(elements) + "]").value();
    const Layout target = parse_layout(to, "f32[" + std::to_string(elements) + "@b[" + ragged + "]]").value();
    const Plan plan{source, target, {{StepKind::exchange, target}}};
    std::vector<int> sent;
    told = &sent;
    conformance::expect_moves(backend, {{plan}});
    told = nullptr;
    return sent;
}

TEST(Order, TheBusiestPeerComesFirst) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 4) GTEST_SKIP() << "the loads are of one rank and three peers";
    Options options;
    options.shared_memory = false;
    options.piece_bytes = message_bytes;
    auto backend = make_backend(MPI_COMM_WORLD, options);
    ASSERT_TRUE(backend) << backend.error().message;
    using Peers = std::vector<int>;
    const std::map<std::string, Peers> wanted = {
        {"1,1,5", {3, 3, 3, 3, 1, 2, 3}},
        {"2,2,2", {1, 2, 3, 1, 2, 3}},
        {"2,3,3", {2, 3, 1, 2, 3, 1, 2, 3}},
        {"0,1,2", {3, 2, 3}},
    };
    for (const auto& [loads, peers] : wanted) {
        const Peers sent = order_of_sends(**backend, loads);
        EXPECT_EQ(sent, (*backend)->rank() == 0 ? peers : Peers()) << loads;
    }
    // Each rank begins with the rank after it.
    const auto plan = conformance::plan_of("x=4", "f32[256@x]", StepKind::all_gather, "f32[256]");
    ASSERT_TRUE(plan);
    Peers sent;
    told = &sent;
    conformance::expect_moves(**backend, {{*plan}});
    told = nullptr;
    Peers rotated;
    for (int i = 1; i < 4; ++i) {
        const int peer = static_cast<int>((*backend)->rank()) + i;
        if (peer < 4) rotated.push_back(peer);
    }
    for (int peer = 0; peer < (*backend)->rank(); ++peer) rotated.push_back(peer);
    EXPECT_EQ(sent, rotated);
}

// Several senders with different loads meet at receivers. Both ends of every channel cut and count equally.
TEST(Order, UnevenLoadsArrive) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 3) GTEST_SKIP() << "two senders and a receiver at least";
    std::mt19937_64 random(7);
    const Mesh mesh = parse_mesh("x=" + std::to_string(ranks)).value();
    for (int trial = 0; trial < 6; ++trial) {
        // Segment (i, j) goes from rank i to rank j, and some are empty.
        constexpr Index longest = 3000;
        std::string source;
        std::string target;
        Index end = 0;
        for (int i = 0; i < ranks; ++i) {
            for (int j = 0; j < ranks; ++j) {
                const auto drawn = static_cast<Index>(random() % 4 == 0 ? random() % longest : random() % 200);
                if (drawn == 0) continue;
                end += drawn;
                const std::string comma = source.empty() ? "" : ",";
                source += comma + std::to_string(end) + ":" + std::to_string(i);
                target += comma + std::to_string(end) + ":" + std::to_string(j);
            }
        }
        const auto layout = [&](const std::string& cut) {
            return parse_layout(mesh, "f32[" + std::to_string(end) + "@x[" + cut + "]]").value();
        };
        const Plan plan{layout(source), layout(target), {{StepKind::exchange, layout(target)}}};
        for (const Index piece : {Index{256}, Index{4096}}) {
            Options options;
            options.shared_memory = false;
            options.piece_bytes = piece;
            auto backend = make_backend(MPI_COMM_WORLD, options);
            ASSERT_TRUE(backend) << backend.error().message;
            conformance::expect_moves(**backend, {{plan}, {plan}}, {2, trial % 2 == 0});
        }
    }
}

// Rank 0 holds all and keeps its part. That part has arrived although no peer has begun to receive.
TEST(Order, ATargetArrivesBeforePeersTakeMessages) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) GTEST_SKIP() << "a sender and a receiver at least";
    constexpr Index part = 1 << 14;  // 64 KiB: MPI ends the send when the receiver has taken it
    const std::string elements = std::to_string(part * ranks);
    const Mesh one = parse_mesh("a=1[0]").value();
    const Mesh all = parse_mesh("b=" + std::to_string(ranks)).value();
    const Layout target = parse_layout(all, "f32[" + elements + "@b]").value();
    const Plan plan{parse_layout(one, "f32[" + elements + "]").value(), target, {{StepKind::exchange, target}}};
    Options options;
    options.shared_memory = false;
    auto backend = make_backend(MPI_COMM_WORLD, options);
    ASSERT_TRUE(backend) << backend.error().message;
    const Index rank = (*backend)->rank();
    std::vector<float> held(rank == 0 ? static_cast<std::size_t>(part * ranks) : 0);
    std::iota(held.begin(), held.end(), 0.0F);
    std::vector<float> received(static_cast<std::size_t>(part));
    auto executor = Executor::prepare(judge(plan, AsSteps{}), **backend);
    ASSERT_TRUE(executor) << executor.error().message;
    const auto bound =
        executor->bind({std::as_bytes(std::span(held)), std::as_writable_bytes(std::span(received)), {}});
    ASSERT_TRUE(bound) << bound.error().message;
    if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
    auto ticket = (*bound)->start();
    ASSERT_TRUE(ticket) << ticket.error().message;
    if (rank == 0) {
        EXPECT_EQ((*ticket)->arrived(), 1U);
        EXPECT_EQ(received.back(), held[static_cast<std::size_t>(part) - 1]);
        EXPECT_EQ((*ticket)->test(), false);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const auto done = (*ticket)->wait();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ((*ticket)->arrived(), 1U);
    EXPECT_EQ(received.front(), static_cast<float>(rank * part));
}

}  // namespace
}  // namespace reshard::mpi
