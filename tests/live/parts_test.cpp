// Arrays that rules make of parts of the publisher's arrays. Values are compared element by element.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include "reshard/live/publish.hpp"
#include "reshard/live/rules.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/text.hpp"

namespace reshard::live {
namespace {

using std::chrono::minutes;

struct Named {
    std::string name;
    Index rows = 0;
    Index columns = 0;
};

// Element (i, j) of version v of the n-th array.
float value(std::size_t array, Index row, Index column, Index version) {
    return static_cast<float>(1000 * (100 * static_cast<Index>(array) + row) + 10 * column + version);
}

// A publisher of 2 ranks with arrays in rows, and a subscriber of 2 ranks by rules.
class Parts : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override { std::filesystem::create_directories(folder); }
    void TearDown() override { std::filesystem::remove_all(folder); }

    // The tiles of each rank: expected(rank, version) has them in the order of the targets.
    using Expected = std::function<std::vector<std::vector<float>>(Index rank, Index version)>;

    void move(const std::string& rules, const Expected& expected) {
        std::vector<std::thread> ranks;
        std::promise<std::string> said;
        const std::shared_future<std::string> endpoint = said.get_future().share();
        std::promise<void> over;
        const std::shared_future<void> ended = over.get_future().share();
        std::atomic<int> left = 2;
        for (Index rank = 0; rank < 2; ++rank) {
            ranks.emplace_back([&, rank] { publish(rank, said, ended); });
            ranks.emplace_back([&, rank] {
                subscribe(rank, endpoint.get(), rules, expected);
                if (--left == 0) over.set_value();
            });
        }
        for (std::thread& one : ranks) one.join();
    }

    void publish(Index rank, std::promise<std::string>& said, const std::shared_future<void>& ended) const {
        const auto group = join_group(folder + "/trainer", rank, 2).value();
        std::vector<std::vector<float>> tiles;
        std::vector<PublishedTensor> tensors;
        for (const Named& one : arrays) {
            tiles.emplace_back(static_cast<std::size_t>(one.rows * one.columns / 2));
            const Layout layout =
                parse_layout(parse_mesh("x=2").value(), fmt::format("f32[{}@x,{}]", one.rows, one.columns)).value();
            tensors.push_back({one.name, layout, std::as_bytes(std::span(tiles.back())), {}});
        }
        auto out = Publisher::open(*group, GetParam() ? "127.0.0.1:0" : folder + "/weights", tensors);
        if (rank == 0) said.set_value(out ? out->endpoint() : "");
        ASSERT_TRUE(out) << describe(out.error());
        for (Index version = 1; version <= versions; ++version) {
            for (std::size_t i = 0; i < arrays.size(); ++i)
                for (Index row = 0; row < arrays[i].rows / 2; ++row)
                    for (Index column = 0; column < arrays[i].columns; ++column)
                        tiles[i][static_cast<std::size_t>(row * arrays[i].columns + column)] =
                            value(i, rank * arrays[i].rows / 2 + row, column, version);
            ASSERT_TRUE(out->commit(version));
        }
        ended.wait();
    }

    void subscribe(Index rank, const std::string& endpoint, const std::string& rules, const Expected& expected) const {
        const auto group = join_group(folder + "/engine", rank, 2).value();
        const auto placed = wanted_by_rules(rules, offered(endpoint).value());
        ASSERT_TRUE(placed) << describe(placed.error());
        std::vector<WantedTensor> wanted;
        for (const WantedByRule& one : *placed) wanted.push_back(one.wanted);
        auto into = Subscriber::connect(*group, endpoint, wanted);
        ASSERT_TRUE(into) << describe(into.error());
        while (into->version() < versions) {
            const auto version = into->update(minutes(5));
            ASSERT_TRUE(version) << describe(version.error());
            const auto tiles = expected(rank, *version);
            ASSERT_EQ(tiles.size(), wanted.size());
            for (std::size_t i = 0; i < tiles.size(); ++i) {
                const auto bytes = into->tile(i).value();
                ASSERT_EQ(bytes.size(), tiles[i].size() * sizeof(float)) << (*placed)[i].name;
                EXPECT_EQ(std::memcmp(bytes.data(), tiles[i].data(), bytes.size()), 0)
                    << (*placed)[i].name << " of version " << *version << " on rank " << rank;
            }
        }
    }

    static constexpr Index versions = 4;
    std::string folder = (std::filesystem::temp_directory_path() / fmt::format("reshard-parts-{}", getpid())).string();
    std::vector<Named> arrays{{"q", 8, 6}, {"k", 4, 6}, {"v", 4, 6}, {"gate_up", 8, 6}};
};
INSTANTIATE_TEST_SUITE_P(Ways, Parts, ::testing::Bool());

// Each rank has its rows of q, of k and of v. Half of gate_up is dropped, so nobody compares its digest.
TEST_P(Parts, FusedAndSplit) {
    move("target tp=2\nqkv = [tp, -] <- q + k + v\nup = [tp, -] <- gate_up[1::2, :]\n", [](Index rank, Index version) {
        std::vector<std::vector<float>> tiles(2);
        for (std::size_t part = 0; part < 3; ++part) {
            const Index rows = part == 0 ? 4 : 2;
            for (Index row = 0; row < rows; ++row)
                for (Index column = 0; column < 6; ++column)
                    tiles[0].push_back(value(part, rank * rows + row, column, version));
        }
        for (Index row = 0; row < 2; ++row)
            for (Index column = 0; column < 6; ++column)
                tiles[1].push_back(value(3, 2 * (2 * rank + row) + 1, column, version));
        return tiles;
    });
}

// Two kv heads of one row group on two ranks, a tied copy, padding, and a transposed array.
TEST_P(Parts, SharedHeadsTiedPaddedAndTransposed) {
    move(
        "target tp=2\nqk = [tp heads of 4, -] <- q + k\nwide = [tp pad 0 to 6, -] <- v\nalso tied = - <- v\n"
        "turned = [-, tp] <- gate_up[:, :].T\n",
        [](Index rank, Index version) {
            std::vector<std::vector<float>> tiles(4);
            for (Index row = 0; row < 4; ++row)
                for (Index column = 0; column < 6; ++column)
                    tiles[0].push_back(value(0, rank * 4 + row, column, version));
            for (Index row = 0; row < 4; ++row)  // both ranks share the head of k
                for (Index column = 0; column < 6; ++column) tiles[0].push_back(value(1, row, column, version));
            for (Index row = 0; row < 3; ++row)
                for (Index column = 0; column < 6; ++column)
                    tiles[1].push_back(rank * 3 + row < 4 ? value(2, rank * 3 + row, column, version) : 0.0F);
            for (Index row = 0; row < 4; ++row)
                for (Index column = 0; column < 6; ++column) tiles[2].push_back(value(2, row, column, version));
            for (Index column = 0; column < 6; ++column)
                for (Index row = 0; row < 4; ++row) tiles[3].push_back(value(3, rank * 4 + row, column, version));
            return tiles;
        });
}

}  // namespace
}  // namespace reshard::live
