// Small moves in a node send their data together with the mark that they have come. Ranks that only send, or only
// receive, must not mix two runs, however slow a rank is.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <random>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
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

// Sums through mailboxes, bounce buffers and shared memory, and plans of several steps, in buffers that change.
TEST(SmallMoves, SumsOfSlowRanksAreNotMixed) {
    if (world_size_of() == 1) GTEST_SKIP() << "nothing is added up";
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::mt19937_64 random(static_cast<std::uint64_t>(world_rank()));
    const Index ranks = world_size_of();
    for (const auto& [count, runs] : {std::pair<Index, int>{3 * ranks, 300}, {30'000 * ranks, 8}}) {
        const auto layout = [&](const char* text) {
            return parse_layout({{"ranks", ranks}}, fmt::format(fmt::runtime(text), count)).value();
        };
        const Layout summands = layout("i64[{}]{{U:ranks}}");
        const Layout scattered = layout("i64[{}@ranks]");
        const Layout sum = layout("i64[{}]");
        const std::vector<Plan> plans = {
            {summands, sum, {{StepKind::all_reduce, sum}}},
            {summands, scattered, {{StepKind::reduce_scatter, scattered}}},
            {summands, sum, {{StepKind::reduce_scatter, scattered}, {StepKind::all_gather, sum}}},
            {summands, scattered, {{StepKind::all_reduce, sum}, {StepKind::slice, scattered}}}};
        for (const Plan& plan : plans) {
            Executor executor = Executor::prepare(judge(plan, backend->capabilities()), *backend).value();
            const std::size_t own = tile_count(plan.target, world_rank());
            const auto memory = backend->allocate(8 * (count + static_cast<Index>(own))).value();
            const std::span all(reinterpret_cast<std::int64_t*>(memory->bytes().data()),
                                static_cast<std::size_t>(count) + own);
            const Index first = tile(plan.target, world_rank())[0].at(0);
            std::vector<std::int64_t> in(static_cast<std::size_t>(count));
            std::vector<std::int64_t> out(own);
            for (int run = 0; run < runs; ++run) {
                const bool shared = run % 7 > 4;
                const std::span source = shared ? all.first(in.size()) : std::span(in);
                const std::span target = shared ? all.last(own) : std::span(out);
                for (std::size_t i = 0; i < source.size(); ++i) source[i] = run + world_rank() * static_cast<Index>(i);
                std::ranges::fill(target, -1);
                const auto moved = run % 5 == 0 ? redistribute(*backend, summands, plan.target, source, target)
                                                : executor.run(source, target);
                ASSERT_TRUE(moved) << moved.error().message;
                Index wrong = 0;
                for (std::size_t i = 0; i < own; ++i) {
                    const Index element = first + static_cast<Index>(i);
                    wrong += target[i] == ranks * run + ranks * (ranks - 1) / 2 * element ? 0 : 1;
                }
                ASSERT_EQ(wrong, 0) << "run " << run << " of " << format(plan);
                dawdle(random);
            }
        }
    }
    clear(*backend);
}

// A rank that brings another pair of layouts than its peers gets an error, and so do they. Nothing of a target is
// written before that.
TEST(SmallMoves, ASumThatRanksDoNotAgreeOnFailsOnAll) {
    const Index ranks = world_size_of();
    if (ranks == 1) GTEST_SKIP() << "one rank agrees with itself";
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    const auto layout = [&](const char* text) {
        return parse_layout({{"ranks", ranks}}, fmt::format(fmt::runtime(text), 2 * ranks)).value();
    };
    const Layout summands = layout("f64[{}]{{U:ranks}}");
    const Layout greatest = layout("f64[{}]{{max:ranks}}");
    const Layout sum = layout("f64[{}]");
    const std::vector<double> in(static_cast<std::size_t>(2 * ranks), 1);
    std::vector<double> out(in.size());
    for (int wrong = 0; wrong < static_cast<int>(ranks); ++wrong) {
        for (const Layout* known : {&summands, &greatest}) ASSERT_TRUE(redistribute(*backend, *known, sum, in, out));
        std::ranges::fill(out, -1);
        EXPECT_FALSE(redistribute(*backend, world_rank() == wrong ? greatest : summands, sum, in, out));
        EXPECT_EQ(out, std::vector<double>(out.size(), -1));
        ASSERT_TRUE(redistribute(*backend, summands, sum, in, out));
        EXPECT_EQ(out, std::vector<double>(out.size(), static_cast<double>(ranks)));
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
