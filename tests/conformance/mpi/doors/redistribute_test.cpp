// redistribute() on a communicator: its result, the state that it keeps and for how long, and the ranks that get an
// error.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

#include <unistd.h>

#include "reshard/backends/mpi.hpp"
#include "reshard/redistribute.hpp"
#include "support/world.hpp"

namespace reshard {
namespace {

struct Pair {
    Layout source;
    Layout target;
};

// Rows to columns of an array with its own extents, different for each number.
Pair pair(Index number) {
    const Mesh mesh{{"ranks", world_size_of()}};
    const std::vector<Index> shape = {8 + number, 12};
    return {*make_layout(mesh, DType::f64, shape, P{"ranks", {}}),
            *make_layout(mesh, DType::f64, shape, P{{}, "ranks"})};
}

// Global element (i, j) is 100 i + j.
std::vector<double> values(const Layout& layout) {
    std::vector<double> all;
    const Tile own = tile(layout, world_rank());
    for (Index i = 0; i < own[0].size(); ++i)
        for (Index j = 0; j < own[1].size(); ++j) all.push_back(static_cast<double>(100 * own[0].at(i) + own[1].at(j)));
    return all;
}

Result<void> move(MPI_Comm communicator, const Pair& ends) {
    const std::vector<double> in = values(ends.source);
    std::vector<double> out(tile_count(ends.target, world_rank()), -1);
    auto moved = mpi::redistribute(communicator, ends.source, ends.target, in, out);
    if (moved && out != values(ends.target)) return fail(Code::plan, "the values are wrong");
    return moved;
}

bool everywhere(bool mine) {
    int all = mine ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

MPI_Comm duplicate_of_world() {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
}

// The resources of a process: mapped segments, open files, the number of the next communicator, resident KiB.
struct Holdings {
    long segments = 0;
    long files = 0;
    long communicators = 0;
    long resident = 0;
};

long mapped_segments() {
    std::ifstream maps("/proc/self/maps");
    long count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("memfd:reshard") != std::string::npos ? 1 : 0;
    return count;
}

Holdings holdings() {
    Holdings now;
    MPI_Barrier(MPI_COMM_WORLD);
    now.segments = mapped_segments();
    for (int file = 0; file < 1024; ++file) now.files += lseek(file, 0, SEEK_CUR) != -1 || errno != EBADF ? 1 : 0;
    MPI_Comm next = duplicate_of_world();
    now.communicators = MPI_Comm_c2f(next);
    MPI_Comm_free(&next);
#ifndef __SANITIZE_ADDRESS__  // it keeps freed memory
    std::ifstream pages("/proc/self/statm");
    long all = 0;
    pages >> all >> now.resident;
    now.resident *= sysconf(_SC_PAGESIZE) / 1024;
#endif
    return now;
}

TEST(Redistribute, RowsToColumns) {
    for (const Index number : {0, 1, 5}) {
        const auto moved = move(MPI_COMM_WORLD, pair(number));  // MPI_Finalize frees what this keeps
        EXPECT_TRUE(moved) << moved.error().message;
    }
}

TEST(Redistribute, ThousandsOfCallsGrowNothing) {
    const char* is_long = std::getenv("RESHARD_LONG");
    const int calls = is_long != nullptr && std::string(is_long) == "1" ? 10000 : 600;
    std::vector<Pair> pairs;
    for (Index number = 0; number < 100; ++number) pairs.push_back(pair(number));
    MPI_Comm own = duplicate_of_world();
    std::mt19937 random(7);  // the same on all ranks
    for (std::size_t number = 0; number < 100; ++number) ASSERT_TRUE(everywhere(move(own, pairs[number]).has_value()));
    const Holdings before = holdings();
    for (int call = 0; call < calls; ++call) {
        const auto moved = move(own, pairs[random() % 100]);
        ASSERT_TRUE(moved) << "call " << call << ": " << moved.error().message;
    }
    const Holdings after = holdings();
    EXPECT_LE(after.segments, 2 * before.segments + 64);  // views are cleaned up when their number has doubled
    EXPECT_LE(after.files, before.files + 4);
    EXPECT_LE(after.communicators, before.communicators + 8);  // some wait until all peers have dropped them
    EXPECT_LE(after.resident, before.resident + 4096);
    MPI_Comm_free(&own);
}

TEST(Redistribute, AFreedCommunicatorFreesAll) {
    Holdings early;
    for (int round = 0; round < 30; ++round) {
        if (round == 10) early = holdings();
        MPI_Comm own = duplicate_of_world();
        for (const Index number : {0, 1, 2}) ASSERT_TRUE(everywhere(move(own, pair(number)).has_value()));
        MPI_Comm_free(&own);
    }
    const Holdings late = holdings();
    EXPECT_LE(late.segments, early.segments + 4);
    EXPECT_LE(late.files, early.files + 2);
    EXPECT_LE(late.communicators, early.communicators + 8);
    EXPECT_LE(late.resident, early.resident + 2048);
}

TEST(Redistribute, ItsBackendAllocatesWhatItMovesAndOutlivesTheCommunicator) {
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    const Pair ends = pair(3);
    EXPECT_EQ(mpi::known_backend(own).value(), nullptr);  // it makes none
    auto backend = mpi::backend_of(own);
    ASSERT_TRUE(backend) << backend.error().message;
    EXPECT_EQ(mpi::backend_of(own).value(), *backend);
    EXPECT_EQ(mpi::known_backend(own).value(), *backend);
    const auto bytes = static_cast<Index>(sizeof(double) * tile_count(ends.target, world_rank()));
    auto memory = (*backend)->allocate(bytes);
    ASSERT_TRUE(memory) << memory.error().message;
    const std::vector<double> in = values(ends.source);
    const auto moved = mpi::redistribute(own, ends.source, ends.target, in, (*memory)->bytes());
    EXPECT_TRUE(moved) << moved.error().message;
    MPI_Comm_free(&own);
    EXPECT_EQ((*backend)->size(), world_size_of());
    backend->reset();
    const std::vector<double> wanted = values(ends.target);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(wanted)), (*memory)->bytes()));
    EXPECT_FALSE(mpi::backend_of(MPI_COMM_NULL));
    EXPECT_FALSE(mpi::known_backend(MPI_COMM_NULL));
}

TEST(Redistribute, ADuplicateStartsWithNothing) {
    MPI_Comm own = duplicate_of_world();
    ASSERT_TRUE(move(own, pair(0)));
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(own, &other);
    MPI_Comm_free(&own);
    EXPECT_TRUE(move(other, pair(0)));
    MPI_Comm_free(&other);
}

TEST(Redistribute, ClearGivesBackAndTheNextCallPreparesAnew) {
    MPI_Comm own = duplicate_of_world();
    mpi::clear(own);  // nothing to clear
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(move(own, pair(3)));
        mpi::clear(own);
    }
    MPI_Comm_free(&own);
}

TEST(Redistribute, TheLeastRecentlyUsedGoesFirstOnAllRanks) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    Redistributor one(**backend);
    std::vector<double> out;
    for (Index number = 0; number < 70; ++number) {
        for (const Index asked : {number, Index{0}}) {  // the first stays in use
            const Pair ends = pair(asked);
            out.resize(tile_count(ends.target, world_rank()));
            ASSERT_TRUE(one.redistribute(ends.source, ends.target, values(ends.source), out));
        }
        ASSERT_EQ(one.executor_count(), std::min<std::size_t>(static_cast<std::size_t>(number) + 1, 64));
    }
}

// Names are each rank's own. If one rank does not know the move, all prepare it anew.
TEST(Redistribute, ExecutorsAreKeptByTheNamesOfEachRank) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend) << backend.error().message;
    Redistributor one(**backend);
    const Pair ends = pair(3);
    const std::vector<double> in = values(ends.source);
    std::vector<double> wanted(tile_count(ends.target, world_rank()));
    ASSERT_TRUE(one.redistribute(ends.source, ends.target, in, wanted));
    const bool last = world_rank() == world_size_of() - 1;
    const std::string mine = std::to_string(world_rank());
    const auto asked = [&](const std::string& name, Index gap) {
        int asks = 0;
        const auto executor = one.executor_of(name, [&]() -> Result<Redistribution> {
            ++asks;
            Storage storage = row_major(tile(ends.target, world_rank()));
            storage.offset = gap;
            return Redistribution{ends.source, ends.target, {std::nullopt, storage}};
        });
        EXPECT_TRUE(executor) << executor.error().message;
        std::vector<double> out(wanted.size() + static_cast<std::size_t>(gap), -1);
        EXPECT_TRUE((*executor)->run(in, out));
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), out.begin() + gap));
        return asks;
    };
    EXPECT_EQ(asked(mine, 0), 1);
    EXPECT_EQ(asked(mine, 0), 0);
    EXPECT_EQ(asked(last ? "moved" : mine, last ? 3 : 0), 1);  // a second move for all, a name for the last rank only
    EXPECT_EQ(asked(last ? "moved" : mine, last ? 3 : 0), 0);
    EXPECT_EQ(asked(mine, 0), world_size_of() == 1 ? 0 : 1);  // the last rank means the first move
    EXPECT_EQ(asked(mine, 0), 0);
}

// Only one rank makes each error. All ranks get an error, and the next call succeeds.
TEST(Redistribute, AnErrorOnOneRankIsAnErrorOnAll) {
    if (world_size_of() == 1) GTEST_SKIP() << "one rank is all";
    MPI_Comm own = duplicate_of_world();
    const Pair ends = pair(0);
    const Pair other = pair(1);
    const bool bad = world_rank() == 1;
    for (const bool prepared : {false, true}) {
        const auto expect_error = [&](const Layout& source, const Layout& target, ConstElements in, Elements out) {
            if (prepared) {
                ASSERT_TRUE(move(own, ends));
            }
            EXPECT_FALSE(mpi::redistribute(own, source, target, in, out));
        };
        std::vector<double> in = values(ends.source);
        std::vector<double> out(tile_count(ends.target, world_rank()));
        std::vector<double> more = in;
        more.push_back(0);
        const std::vector<std::int64_t> integers(in.size());
        const std::vector<double> others = values(other.source);
        std::vector<double> others_out(tile_count(other.target, world_rank()));
        expect_error(ends.source, ends.target, bad ? more : in, out);
        expect_error(ends.source, ends.target, bad ? ConstElements(integers) : ConstElements(in), out);
        expect_error(ends.source, ends.target, in, bad ? in : out);
        if (bad)
            expect_error(other.source, other.target, others, others_out);
        else
            expect_error(ends.source, ends.target, in, out);
        Layout broken = ends.source;
        broken.mesh.axes.front().size = 0;
        expect_error(bad ? broken : ends.source, ends.target, in, out);
        EXPECT_TRUE(move(own, ends));
    }
    MPI_Comm_free(&own);
}

TEST(Redistribute, TooFewRanksOrNoCommunicator) {
    const Mesh mesh{{"ranks", world_size_of() + 1}};
    const Layout rows = *make_layout(mesh, DType::f64, {12}, P{"ranks"});
    const std::vector<double> in(tile_count(rows, world_rank()));
    std::vector<double> out(in.size());
    const auto moved = mpi::redistribute(MPI_COMM_WORLD, rows, rows, in, out);
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code, Code::mismatch);
    const auto nowhere = mpi::redistribute(MPI_COMM_NULL, rows, rows, in, out);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, Code::backend);
}

}  // namespace
}  // namespace reshard
