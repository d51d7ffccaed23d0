// Small moves in a node send their data together with the mark that they have come. Ranks that only send, or only
// receive, must not mix two runs, however slow a rank is.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <random>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/redistribute.hpp"
#include "support/world.hpp"

namespace reshard {
namespace {

struct Pair {
    Layout source;
    Layout target;
};

// All ranks send to all; rank 0 sends to all; all send to rank 0.
std::vector<Pair> pairs() {
    const Mesh mesh{{"ranks", world_size_of()}};
    const auto layout = [&](const std::vector<Index>& shape, const P& spec) {
        return *make_layout(mesh, DType::f64, shape, spec);
    };
    std::vector<Pair> all;
    for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{8, 8}, {1, 40}, {3, 40}}) {
        all.push_back({layout(shape, P{"ranks", {}}), layout(shape, P{{}, "ranks"})});
        all.push_back({all.back().target, all.back().source});
    }
    return all;
}

std::vector<double> values(const Layout& layout, int run) {
    std::vector<double> all;
    const Tile own = tile(layout, world_rank());
    for (Index i = 0; i < own[0].size(); ++i)
        for (Index j = 0; j < own[1].size(); ++j)
            all.push_back(static_cast<double>(1000 * run + 40 * own[0].at(i) + own[1].at(j)));
    return all;
}

Buffers buffers_of(const std::vector<double>& in, std::vector<double>& out) {
    return {std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(out)), {}};
}

// Lets this rank fall behind its peers.
void dawdle(std::mt19937_64& random) {
    for (auto turns = random() % 4 == 0 ? random() % 20 : 0; turns > 0; --turns) sched_yield();
}

TEST(SmallMoves, RunsOfSlowRanksAreNotMixed) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::mt19937_64 random(static_cast<std::uint64_t>(world_rank()));  // each rank has its own pace
    for (const auto& [source, target] : pairs()) {
        const auto made = synthesize(source, target, {.capabilities = backend->capabilities()}).value();
        Executor executor = Executor::prepare(made, *backend).value();
        std::vector<double> out(tile_count(target, world_rank()));
        for (int run = 0; run < 500; ++run) {
            const std::vector<double> in = values(source, run);
            const bool by_door = run % 5 == 0;
            const auto moved = by_door ? redistribute(*backend, source, target, in, out) : executor.run(in, out);
            ASSERT_TRUE(moved) << moved.error().message;
            ASSERT_EQ(out, values(target, run)) << "run " << run;
            dawdle(random);
        }
    }
    clear(*backend);
}

// The runs of several executors overlap, and are waited for in another order on each rank.
TEST(SmallMoves, RunsInFlightAreWaitedForInAnyOrder) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::mt19937_64 random(static_cast<std::uint64_t>(world_rank()));
    const std::vector<Pair> all = pairs();
    std::vector<Executor> executors;
    for (const auto& [source, target] : all) {
        const auto made = synthesize(source, target, {.capabilities = backend->capabilities()}).value();
        executors.push_back(Executor::prepare(made, *backend).value());
    }
    for (int run = 0; run < 100; ++run) {
        std::vector<std::vector<double>> in;
        std::vector<std::vector<double>> out;
        std::vector<std::unique_ptr<Ticket>> tickets;
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < all.size(); ++i) {
            in.push_back(values(all[i].source, run));
            out.emplace_back(tile_count(all[i].target, world_rank()));
            order.push_back(i);
        }
        std::vector<std::unique_ptr<Bound>> bounds;
        for (std::size_t i = 0; i < all.size(); ++i) {
            bounds.push_back(executors[i].bind(buffers_of(in[i], out[i])).value());
            tickets.push_back(bounds.back()->start().value());
        }
        std::ranges::shuffle(order, random);
        for (const std::size_t i : order) {
            const auto done = tickets[i]->wait();
            ASSERT_TRUE(done) << done.error().message;
            ASSERT_EQ(out[i], values(all[i].target, run)) << "run " << run << " of pair " << i;
        }
    }
}

// Half of the ranks wait for a large move first, which needs its peers all the time. The others have started it, and
// wait for a small move within one call.
TEST(SmallMoves, AMoveWithinACallAdvancesOtherRuns) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const Mesh mesh{{"ranks", world_size_of()}};
    const auto layout = [&](const P& spec) { return make_layout(mesh, DType::f64, {520, 500}, spec).value(); };
    const Pair large{layout(P{"ranks", {}}), layout(P{{}, "ranks"})};
    const Pair small = pairs().front();
    const auto prepared = [&](const Pair& pair) {
        const auto made = synthesize(pair.source, pair.target, {.capabilities = backend->capabilities()}).value();
        return Executor::prepare(made, *backend).value();
    };
    Executor of_large = prepared(large);
    Executor of_small = prepared(small);
    std::vector<double> large_out(tile_count(large.target, world_rank()));
    std::vector<double> small_out(tile_count(small.target, world_rank()));
    for (int run = 0; run < 6; ++run) {
        const std::vector<double> large_in = values(large.source, run);
        const std::vector<double> small_in = values(small.source, run);
        const auto move_small = [&] {
            return run % 2 == 0 ? of_small.run(small_in, small_out)
                                : redistribute(*backend, small.source, small.target, small_in, small_out);
        };
        if (world_rank() % 2 == 0) {
            const auto bound = of_large.bind(buffers_of(large_in, large_out)).value();
            const auto ticket = bound->start().value();
            ASSERT_TRUE(move_small());
            ASSERT_TRUE(ticket->wait());
        } else {
            ASSERT_TRUE(of_large.run(large_in, large_out));
            ASSERT_TRUE(move_small());
        }
        ASSERT_EQ(large_out, values(large.target, run));
        ASSERT_EQ(small_out, values(small.target, run));
    }
    clear(*backend);
}

// A list of small arrays is one run: each pair of ranks sends one message for all of them.
TEST(SmallMoves, AListIsOneRun) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const std::vector<Pair> all = pairs();
    std::vector<Problem> problems;
    for (const auto& [source, target] : all) problems.push_back({source, target});
    const ListSynthesis made = synthesize(problems, {.capabilities = backend->capabilities()}).value();
    Executor executor = Executor::prepare(made, *backend).value();
    EXPECT_EQ(executor.bucket_count(), 1U);
    EXPECT_NE(executor.describe().find("at once through mailboxes"), std::string::npos) << executor.describe();
    for (int run = 0; run < 20; ++run) {
        std::vector<std::vector<double>> in;
        std::vector<std::vector<double>> out;
        for (const auto& [source, target] : all) {
            in.push_back(values(source, run));
            out.emplace_back(tile_count(target, world_rank()));
        }
        std::vector<Buffers> buffers;
        for (std::size_t i = 0; i < all.size(); ++i) buffers.push_back(buffers_of(in[i], out[i]));
        const auto bound = executor.bind(buffers).value();
        ASSERT_TRUE(bound->start().value()->wait());
        for (std::size_t i = 0; i < all.size(); ++i)
            ASSERT_EQ(out[i], values(all[i].target, run)) << "run " << run << " of pair " << i;
    }
}

}  // namespace
}  // namespace reshard
