// redistribute() on the ranks of one process, with one thread per rank and with a single thread.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "reshard/backends/local.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 2}};

Layout layout(const char* text) { return *parse_layout(mesh, text); }

// The tiles of an array with elements 0, 1, 2, ... in a layout without summands.
template <class T>
std::vector<std::vector<T>> tiles_of(const Layout& of) {
    std::vector<std::vector<T>> tiles;
    for (Index rank = 0; rank < 4; ++rank) {
        const Tile own = tile(of, rank);
        std::vector<T>& values = tiles.emplace_back();
        for (const Box& box : boxes_of(own))
            for (Index i = box[0].begin; i < box[0].end; ++i)
                for (Index j = box[1].begin; j < box[1].end; ++j)
                    values.push_back(static_cast<T>(i * of.dims[1].extent + j));
    }
    return tiles;
}

template <class T>
void expect_moves(local::World& world, const char* source, const char* target) {
    const auto moved = local::redistribute(world, layout(source), layout(target), tiles_of<T>(layout(source)));
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(*moved, tiles_of<T>(layout(target)));
}

TEST(Redistribute, TheTilesOfAllRanksByOneThread) {
    local::World world(4);
    for (int round = 0; round < 2; ++round) {
        expect_moves<float>(world, "f32[6@x,4]", "f32[6,4@y]");
        expect_moves<double>(world, "f64[7@(x,y),5]", "f64[7,5@(y,x)]");
        expect_moves<std::complex<float>>(world, "c64[6@x,4@y]", "c64[6,4]");
        expect_moves<std::int16_t>(world, "i16[6@y,4]", "i16[6@x,4]");
        expect_moves<unsigned char>(world, "u8[6,4]", "u8[6@(x,y),4]");
    }
    EXPECT_EQ(Redistributor::of(world.rank(3)).executor_count(), 5U);
    clear(world.rank(3));
    EXPECT_EQ(Redistributor::of(world.rank(3)).executor_count(), 0U);
}

// Rank r holds elements 6 r to 6 r + 5 of 24, for any shape and any names of the mesh.
TEST(Redistribute, AReshapeOnAMeshWrittenDifferentlyMovesNothing) {
    local::World world(4);
    const Layout line = layout("f32[24@(x,y)]");
    const Layout table = *parse_layout(Mesh{{"all", 4}}, "f32[4@all,6]");
    std::vector<std::vector<float>> tiles(4, std::vector<float>(6));
    for (std::size_t rank = 0; rank < 4; ++rank)
        std::iota(tiles[rank].begin(), tiles[rank].end(), static_cast<float>(6 * rank));
    const auto made = synthesize(line, table);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->plan().steps.empty()) << format(made->plan());
    const auto moved = local::redistribute(world, line, table, tiles);
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(*moved, tiles);
}

TEST(Redistribute, TheCallOfEachRankInItsThread) {
    local::World world(4);
    const Layout source = layout("i32[6@x,4]");
    const Layout target = layout("i32[6,4@(x,y)]");
    const auto in = tiles_of<std::int32_t>(source);
    const auto wanted = tiles_of<std::int32_t>(target);
    std::array<std::string, 4> wrong;
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 4; ++rank) {
        threads.emplace_back([&, rank] {
            for (int round = 0; round < 3; ++round) {
                std::vector<std::int32_t> out(wanted[rank].size());
                const auto moved = redistribute(world.rank(static_cast<Index>(rank)), source, target, in[rank], out);
                if (!moved) wrong[rank] += moved.error().message;
                if (out != wanted[rank]) wrong[rank] += "; other values";
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : wrong) EXPECT_EQ(one, "");
}

TEST(Redistribute, BytesStandForEveryType) {
    local::World world(4);
    const Layout source = layout("bf16[6@x,4]");
    const Layout target = layout("bf16[6,4@x]");
    std::vector<std::vector<std::byte>> in(4, std::vector<std::byte>(24, std::byte{5}));
    const auto moved = local::redistribute(world, source, target, in);
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(*moved, in);
}

TEST(Redistribute, ErrorsSayWhatDoesNotFit) {
    local::World world(4);
    const Layout source = layout("f32[6@x,4]");
    const Layout target = layout("f32[6,4@x]");
    const auto message = [&](const auto& in) {
        const auto moved = local::redistribute(world, source, target, in);
        return moved ? std::string() : moved.error().message;
    };
    auto tiles = tiles_of<float>(source);
    EXPECT_EQ(message(tiles_of<double>(source)), "the elements of `in` are f64, those of its layout f32");
    tiles[2].pop_back();
    EXPECT_EQ(message(tiles), "rank 2 holds 12 elements of 4 bytes, `in` has 44 bytes");
    tiles.pop_back();
    EXPECT_EQ(message(tiles), "4 ranks were given 3 source and 4 target tiles");
    expect_moves<float>(world, "f32[6@x,4]", "f32[6,4@x]");  // the ranks still work
}

TEST(Redistribute, RanksOfOneProcessShareNoMemoryThatIsWritten) {
    local::World world(4);
    const Layout source = layout("f32[6@x,4]");
    const Layout target = layout("f32[6,4@x]");
    const auto tiles = tiles_of<float>(source);
    std::vector<float> memory(200);
    const auto message = [&](const std::vector<std::size_t>& in_at, const std::vector<std::size_t>& out_at) {
        std::vector<ConstElements> in;
        std::vector<Elements> out;
        for (std::size_t rank = 0; rank < 4; ++rank) {
            in.emplace_back(std::span<const float>(memory).subspan(in_at[rank], tiles[rank].size()));
            out.emplace_back(std::span<float>(memory).subspan(out_at[rank], 12));
        }
        const auto moved = local::redistribute(world, source, target, in, out);
        return moved ? std::string() : moved.error().message;
    };
    EXPECT_EQ(message({0, 0, 0, 0}, {80, 81, 120, 140}), "`out` of rank 0 and `out` of rank 1 overlap in memory");
    EXPECT_EQ(message({0, 0, 0, 0}, {80, 92, 104, 115}), "`out` of rank 2 and `out` of rank 3 overlap in memory");
    EXPECT_EQ(message({0, 20, 42, 60}, {80, 92, 104, 40}), "`out` of rank 3 and `in` of rank 2 overlap in memory");
    EXPECT_EQ(message({0, 0, 0, 0}, {80, 92, 104, 116}), "");  // sources may share memory
}

// Ranks that are already in a run get the error, whether the run was prepared before or by this call.
TEST(Redistribute, AnErrorOfOneThreadIsOneOfAll) {
    local::World world(4);
    const Layout source = layout("f32[6@x,4]");
    const Layout target = layout("f32[6,4@x]");
    for (int round = 0; round < 3; ++round) {
        std::vector<std::thread> threads;
        std::array<int, 4> failed{};
        for (std::size_t rank = 0; rank < 4; ++rank) {
            threads.emplace_back([&, rank] {
                auto in = tiles_of<float>(source)[rank];
                std::vector<float> out(12);
                if (rank == 2) in.pop_back();
                if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
                Backend& backend = world.rank(static_cast<Index>(rank));
                failed[rank] = redistribute(backend, source, target, in, out) ? 0 : 1;
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(failed, (std::array<int, 4>{1, 1, 1, 1}));
        expect_moves<float>(world, "f32[6@x,4]", "f32[6,4@x]");
    }
}

// Slice, permute, gather: the tiles between need a workspace. The executor has its own if the caller gives none.
TEST(Executor, RunTakesTheWorkspaceItNeeds) {
    const Mesh six{{"x", 2}, {"y", 3}};
    const Layout source = *parse_layout(six, "f32[36@x,4]");
    const Layout target = *parse_layout(six, "f32[36@y,4]");
    const Plan plan = synthesize(source, target, {.vocabulary = Vocabulary::collectives})->plan();
    local::World world(6);
    std::array<std::string, 6> wrong;
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < 6; ++rank) {
        threads.emplace_back([&, rank] {
            std::string& own = wrong[static_cast<std::size_t>(rank)];
            auto executor = Executor::prepare(judge(plan, world.rank(rank).capabilities()), world.rank(rank));
            if (!executor) return void(own = executor.error().message);
            std::vector<float> in(tile_count(source, rank)), out(tile_count(target, rank)), wanted(out.size());
            const auto begin = [&](const Layout& of) { return static_cast<float>(4 * tile_offset(of, rank)[0]); };
            std::iota(in.begin(), in.end(), begin(source));
            std::iota(wanted.begin(), wanted.end(), begin(target));
            if (executor->workspace_bytes() == 0) own += "no workspace is needed; ";
            for (int round = 0; round < 2; ++round)
                if (auto moved = executor->run(in, out); !moved) own += moved.error().message;
            if (out != wanted) own += "other values";
            if (executor->run(std::vector<int>(in.size()), out)) own += "integers are taken for floats";
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : wrong) EXPECT_EQ(one, "");
}

}  // namespace
}  // namespace reshard
