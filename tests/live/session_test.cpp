// Both ends in one process: each rank is a thread. Values are compared element by element.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include "live/tensors.hpp"
#include "live/transport/puts.hpp"
#include "reshard/live/publish.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/text.hpp"

namespace reshard::live {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// A folder for sockets that is removed at the end.
class Folder {
public:
    Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("reshard-live-{}", getpid())) {
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

Layout layout_of(const std::string& mesh, const std::string& text) {
    return parse_layout(parse_mesh(mesh).value(), text).value();
}

// The tile of a rank: element p of the array, row-major, is p + 1000003 * version.
std::vector<std::int64_t> tile_of(const Layout& layout, Index rank, Index version) {
    std::vector<std::int64_t> values;
    const Tile held = tile(layout, rank);
    const std::function<void(std::size_t, Index)> walk = [&](std::size_t k, Index place) {
        if (k == held.size()) return values.push_back(place + 1000003 * version);
        for (const Interval& interval : held[k].intervals)
            for (Index i = interval.begin; i < interval.end; ++i) walk(k + 1, place * layout.dims[k].extent + i);
    };
    if (tile_count(layout, rank) > 0) walk(0, 0);
    return values;
}

// Runs at the end of a block, also if an assertion leaves it.
class Last {
public:
    explicit Last(std::function<void()> what) : what_(std::move(what)) {}
    ~Last() { what_(); }

private:
    std::function<void()> what_;
};

struct Pair {
    std::string name, source_mesh, source, target_mesh, target;
};

// Runs a body for each rank of a job, in threads.
std::vector<std::thread> job(const std::string& endpoint, Index ranks, const std::function<void(Group&)>& body) {
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < ranks; ++rank)
        threads.emplace_back([=] {
            auto group = ranks == 1 ? alone() : join_group(endpoint, rank, ranks).value();
            body(*group);
        });
    return threads;
}

enum class Way { memory, tcp, ucx };

void move(Way way, const std::vector<Pair>& pairs, Index sources, Index targets, Index versions) {
    if (way == Way::ucx)
        if (const auto there = open_ucx(Devices::any); !there) GTEST_SKIP() << there.error().message;
    const Folder folder;
    std::promise<std::string> listens;
    const std::shared_future<std::string> endpoint = listens.get_future().share();
    std::atomic<Index> finished = 0;
    auto trainer = job(folder / "trainer", sources, [&](Group& group) {
        std::vector<std::vector<std::int64_t>> tiles;
        std::vector<PublishedTensor> tensors;
        for (const Pair& pair : pairs) {
            const Layout layout = layout_of(pair.source_mesh, pair.source);
            tiles.push_back(tile_of(layout, group.rank(), 1));
            tensors.push_back({pair.name, layout, std::as_bytes(std::span(tiles.back()))});
        }
        const PublishOptions options{.transport = way == Way::ucx ? Transport::ucx : Transport::automatic};
        auto out = Publisher::open(group, way == Way::memory ? folder / "weights" : "127.0.0.1:0", tensors, options);
        if (group.rank() == 0) listens.set_value(out ? out->endpoint() : "");
        ASSERT_TRUE(out) << describe(out.error());
        for (Index version = 1; version <= versions; ++version) {
            for (std::size_t i = 0; i < pairs.size(); ++i)  // the publisher sees the same memory with new values
                std::ranges::copy(tile_of(tensors[i].layout, group.rank(), version), tiles[i].begin());
            const auto done = out->commit(version);
            ASSERT_TRUE(done) << describe(done.error());
            for (std::vector<std::int64_t>& tile : tiles) std::ranges::fill(tile, -1);  // and may overwrite it
        }
        EXPECT_EQ(out->newest(), versions);
        while (finished < targets) std::this_thread::sleep_for(milliseconds(1));
    });
    auto engine = job(folder / "engine", targets, [&](Group& group) {
        std::vector<WantedTensor> wanted;
        for (const Pair& pair : pairs) wanted.push_back({pair.name, layout_of(pair.target_mesh, pair.target)});
        const Last last_words([&] { ++finished; });
        auto into = Subscriber::connect(group, endpoint.get(), wanted);
        ASSERT_TRUE(into) << describe(into.error());
        EXPECT_EQ(into->version(), 0);
        EXPECT_FALSE(into->tile(0));
        Index last = 0;
        while (last < versions) {
            const auto version = into->update(minutes(5));
            ASSERT_TRUE(version) << describe(version.error());
            ASSERT_GT(*version, last);
            last = *version;
            for (std::size_t i = 0; i < pairs.size(); ++i) {
                const auto right = tile_of(wanted[i].layout, group.rank(), last);
                const auto bytes = into->tile(i).value();
                ASSERT_EQ(bytes.size(), right.size() * sizeof(std::int64_t));
                ASSERT_TRUE(right.empty() || std::memcmp(bytes.data(), right.data(), bytes.size()) == 0)
                    << pairs[i].name;
            }
        }
        EXPECT_EQ(into->poll().value(), std::nullopt);
        EXPECT_EQ(into->version(), versions);
    });
    for (auto& one : trainer) one.join();
    for (auto& one : engine) one.join();
}

class Session : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Session, ::testing::Values(Way::memory, Way::tcp, Way::ucx));

TEST_P(Session, OneToOne) { move(GetParam(), {{"w", "x=1", "i64[7,5]", "x=1", "i64[7,5]"}}, 1, 1, 3); }

TEST_P(Session, RowsToColumns) { move(GetParam(), {{"w", "x=2", "i64[12@x,10]", "x=3", "i64[12,10@x]"}}, 2, 3, 4); }

// Far more than a socket holds, in runs of one element and in long ones.
TEST_P(Session, Large) {
    move(GetParam(),
         {{"fine", "x=2", "i64[2000,500@x/1]", "x=3", "i64[2000,500@x]"},
          {"coarse", "x=2", "i64[1500000@x]", "x=3", "i64[1500000@x]"}},
         2, 3, 2);
}

TEST_P(Session, ReplicatedUnevenCyclicAndEmptyTiles) {
    move(GetParam(),
         {{"replicated", "x=2,y=2", "i64[9@x,4]", "x=3", "i64[9,4]"},
          {"uneven", "x=2,y=2", "i64[5@(x,y),3]", "x=3", "i64[5,3@x]"},
          {"cyclic", "x=4", "i64[37@x/2,3]", "x=3", "i64[37@x/5,3]"},
          {"small", "x=4", "i64[2@x]", "x=3", "i64[2@x]"},
          {"one", "x=1", "i64[11]", "x=2", "i64[11@x]"},
          {"backwards", "x=4[3,2,1,0]", "i64[16@x]", "x=2[2,0]", "i64[16@x]"}},
         4, 3, 5);
}

TEST(Sessions, ASubscriberTakesSomeTensorsOnly) {
    const Folder folder;
    const Layout layout = layout_of("x=1", "i64[6]");
    const std::vector<std::int64_t> a{1, 2, 3, 4, 5, 6};
    const std::vector<std::int64_t> b{6, 5, 4, 3, 2, 1};
    const auto group = alone();
    auto out = Publisher::open(*group, folder / "w",
                               std::vector<PublishedTensor>{{"a", layout, std::as_bytes(std::span(a))},
                                                            {"b", layout, std::as_bytes(std::span(b))}});
    ASSERT_TRUE(out) << describe(out.error());
    ASSERT_TRUE(out->commit(5));
    const auto other = alone();
    auto into = Subscriber::connect(*other, folder / "w", std::vector<WantedTensor>{{"b", layout}});
    ASSERT_TRUE(into) << describe(into.error());
    EXPECT_EQ(into->poll().value(), 5);
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), b.data(), 48), 0);
}

// --- errors

class Errors : public ::testing::Test {
protected:
    Folder folder;
    Layout layout = layout_of("x=1", "i64[6]");
    std::vector<std::int64_t> values = std::vector<std::int64_t>(6, 1);
    std::unique_ptr<Group> mine = alone();
    std::unique_ptr<Group> theirs = alone();

    [[nodiscard]] Result<Publisher> publish(const std::string& name = "w", const PublishOptions& options = {}) {
        return Publisher::open(*mine, folder / "out",
                               std::vector<PublishedTensor>{{name, layout, std::as_bytes(std::span(values))}}, options);
    }
    [[nodiscard]] Result<Subscriber> subscribe(const std::string& name, const Layout& wanted) {
        return Subscriber::connect(*theirs, folder / "out", std::vector<WantedTensor>{{name, wanted}},
                                   {.lease = milliseconds(500), .connect_limit = milliseconds(200)});
    }
};

TEST_F(Errors, Names) {
    EXPECT_EQ(publish("two words").error().code, Code::usage);
    EXPECT_EQ(publish("a|b").error().code, Code::usage);
    EXPECT_EQ(Publisher::open(*mine, folder / "out", {}).error().message, "no tensors; wanted at least one");
}

TEST_F(Errors, Tiles) {
    values.pop_back();
    EXPECT_EQ(publish().error().message, "the tile of tensor w has 40 bytes; rank 0 holds 48");
}

TEST_F(Errors, TilesOfEachCommit) {
    const std::vector<std::int64_t> moved(6, 7);
    auto out = Publisher::open(*mine, folder / "out", std::vector<PublishedTensor>{{"w", layout}});
    ASSERT_TRUE(out) << describe(out.error());
    EXPECT_EQ(out->commit(1).error().message, "the tile of tensor w has 0 bytes; rank 0 holds 48");
    EXPECT_EQ(out->commit(1, {}).error().message, "0 tiles; wanted 1, one for each tensor");
    ASSERT_TRUE(out->commit(1, std::vector{std::as_bytes(std::span(moved))}));
    auto into = subscribe("w", layout);
    ASSERT_TRUE(into) << describe(into.error());
    ASSERT_EQ(into->update(minutes(1)).value(), 1);
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), moved.data(), 48), 0);
}

TEST_F(Errors, AClosedSubscriberKeepsItsVersion) {
    auto out = publish();
    ASSERT_TRUE(out->commit(1));
    auto into = subscribe("w", layout);
    ASSERT_TRUE(into->update(minutes(1)));
    into->close();
    EXPECT_EQ(into->update(minutes(1)).error().message, "the subscriber is not connected; reconnect it first");
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), values.data(), 48), 0);
    out = Result<Publisher>(fail(Code::usage, "it leaves"));
    ASSERT_FALSE(into->reconnect(*theirs));  // nobody is there
    EXPECT_FALSE(into->update(minutes(1)));
    EXPECT_EQ(into->version(), 1);
}

// Ranks that broadcast a text find each other. A rank that cannot make a call fails it on all ranks at once.
TEST(Groups, ThatBroadcast) {
    const Folder folder;
    std::promise<std::string> said;
    const std::shared_future<std::string> heard = said.get_future().share();
    std::vector<std::thread> ranks;
    for (Index rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            const auto broadcast = [&](std::string text) -> Result<std::string> {
                if (rank == 0) said.set_value(std::move(text));
                return heard.get();
            };
            const auto group = join_group(std::function<Result<std::string>(std::string)>(broadcast), rank, 3);
            ASSERT_TRUE(group) << describe(group.error());
            const auto all = (*group)->gather(fmt::format("rank {}", rank), minutes(1));
            EXPECT_EQ(all.value(), (std::vector<std::string>{"rank 0", "rank 1", "rank 2"}));
            if (rank == 1) {
                EXPECT_TRUE(report_failure(**group, "no memory", minutes(1)));
                return;
            }
            const Layout layout = layout_of("x=3", "i64[6@x]");
            const auto none = Publisher::open(**group, folder / "out", std::vector<PublishedTensor>{{"w", layout}});
            EXPECT_EQ(none.error().message, "rank 1 of the publisher: no memory");
        });
    for (std::thread& one : ranks) one.join();
}

TEST_F(Errors, ALayoutForMoreRanks) {
    layout = layout_of("x=2", "i64[6@x]");
    EXPECT_EQ(publish().error().message, "tensor w is on 2 devices; this job has 1 ranks");
}

TEST_F(Errors, AnEndpointIsTakenOnceAndFreeAgain) {
    {
        auto first = publish();
        ASSERT_TRUE(first);
        EXPECT_NE(publish().error().message.find("another process listens at"), std::string::npos);
    }
    EXPECT_TRUE(publish());
}

TEST_F(Errors, NoPublisher) {
    const auto none = subscribe("w", layout);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::backend);
    EXPECT_NE(none.error().message.find("cannot connect to"), std::string::npos);
}

TEST_F(Errors, WhatThePublisherDoesNotHave) {
    auto out = publish();
    ASSERT_TRUE(out);
    EXPECT_EQ(subscribe("v", layout).error().message, "the publisher has no tensor v");
    const auto other = subscribe("w", layout_of("x=1", "i64[7]"));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::mismatch);
    EXPECT_TRUE(other.error().message.starts_with("tensor w: ")) << other.error().message;
}

TEST_F(Errors, VersionsThatDoNotGrow) {
    auto out = publish();
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->commit(3));
    EXPECT_EQ(out->commit(3).error().message, "version 3 is committed after version 3; versions must grow from 1 on");
    ASSERT_TRUE(out->commit(4));
}

TEST_F(Errors, APublisherThatLeavesAndComesAgain) {
    std::optional<Publisher> out = std::move(publish().value());
    ASSERT_TRUE(out->commit(3));
    auto into = subscribe("w", layout);
    ASSERT_TRUE(into) << describe(into.error());
    EXPECT_EQ(into->update(minutes(1)).value(), 3);
    EXPECT_EQ(into->update(milliseconds(50)).error().message, "no newer version than 3 within 50 ms");
    out.reset();
    const auto lost = into->update(minutes(1));
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().message, "rank 0 of the publisher is lost: its connection is closed");
    EXPECT_EQ(into->version(), 3);  // it stays
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), values.data(), 48), 0);

    out = std::move(publish().value());
    values.assign(6, 9);
    ASSERT_TRUE(out->commit(2));
    ASSERT_TRUE(into->reconnect(*theirs));
    EXPECT_EQ(into->version(), 3);
    EXPECT_EQ(into->poll().value(), std::nullopt);  // never back to 2
    ASSERT_TRUE(out->commit(4));
    EXPECT_EQ(into->update(minutes(1)).value(), 4);
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), values.data(), 48), 0);
}

// The publisher leaves when the first of two tensors has come. In place the old version is overwritten then, so nothing
// is served until a version is whole again.
TEST_F(Errors, AnUpdateInPlaceThatFails) {
    const Layout large = layout_of("x=1", "i64[1200000]");  // the next tensor is copied after a look at the publisher
    std::vector<std::int64_t> first(1200000, 1);
    std::optional<Publisher> out;
    const auto open = [&] {
        out = std::move(Publisher::open(*mine, folder / "out",
                                        std::vector<PublishedTensor>{{"large", large, std::as_bytes(std::span(first))},
                                                                     {"w", layout, std::as_bytes(std::span(values))}})
                            .value());
    };
    open();
    ASSERT_TRUE(out->commit(1));
    bool leaves = false;
    SubscribeOptions options{.in_place = true};
    options.arrived = [&](std::size_t tensor, std::span<const std::byte>) {
        if (leaves && tensor == 0) out.reset();
    };
    auto into = Subscriber::connect(*theirs, folder / "out", std::vector<WantedTensor>{{"large", large}, {"w", layout}},
                                    options);
    ASSERT_TRUE(into) << describe(into.error());
    ASSERT_EQ(into->update(minutes(1)).value(), 1);
    const std::byte* const memory = into->tile(0).value().data();
    first.assign(first.size(), 2);
    values.assign(6, 2);
    ASSERT_TRUE(out->commit(2));
    leaves = true;
    EXPECT_EQ(into->update(minutes(1)).error().message, "rank 0 of the publisher is lost: its connection is closed");
    EXPECT_EQ(into->version(), 0);
    EXPECT_EQ(into->tile(1).error().message,
              "the memory has parts of several versions; update() takes a whole version");
    leaves = false;
    open();
    ASSERT_TRUE(out->commit(1));  // the version that was overwritten: it may come again, older ones may not
    ASSERT_TRUE(into->reconnect(*theirs));
    EXPECT_EQ(into->version(), 0);
    EXPECT_EQ(into->update(minutes(1)).value(), 1);
    EXPECT_EQ(into->tile(0).value().data(), memory);
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), first.data(), first.size() * 8), 0);
    EXPECT_EQ(std::memcmp(into->tile(1).value().data(), values.data(), 48), 0);
}

// The digest is the same in every layout, and one changed byte changes it.
TEST(Tensors, DigestPartsAddUp) {
    const DigestKeys keys;
    const auto total = [&](const Layout& layout, bool wrong) {
        std::uint64_t sum = 0;
        for (Index rank = 0; rank < device_count(layout); ++rank) {
            auto tile = tile_of(layout, rank, 1);
            if (wrong && rank == 1) tile[0] ^= 1;
            sum = added(sum, digest_part(keys, layout, rank, std::as_bytes(std::span(tile)), 3).value());
        }
        return sum;
    };
    const auto right = total(layout_of("x=1", "i64[9,4]"), false);
    for (const char* text : {"i64[9@x,4]", "i64[9,4@(x,y)]", "i64[9@y/2,4@x]", "i64[9,4]"}) {
        EXPECT_EQ(total(layout_of("x=2,y=2", text), false), right) << text;
        EXPECT_NE(total(layout_of("x=2,y=2", text), true), right) << text;
    }
}

}  // namespace
}  // namespace reshard::live
