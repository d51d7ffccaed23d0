// The offers of a publisher as others see them: its tensors, its status, layouts by rules, casts.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "live/read_log.hpp"
#include "live/transport/rate_limit.hpp"
#include "live/transport/segment.hpp"
#include "reshard/live/publish.hpp"
#include "reshard/live/rules.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/text.hpp"

namespace reshard::live {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

Layout layout_of(const std::string& text) { return parse_layout(parse_mesh("x=1").value(), text).value(); }

// One process publishes and subscribes, in shared memory and over TCP.
class Offers : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override { std::filesystem::create_directories(folder); }
    void TearDown() override { std::filesystem::remove_all(folder); }

    Result<Publisher> publish(const std::vector<PublishedTensor>& tensors) {
        return Publisher::open(*mine, GetParam() ? "127.0.0.1:0" : folder + "/weights", tensors);
    }

    std::string folder = (std::filesystem::temp_directory_path() / fmt::format("reshard-offers-{}", getpid())).string();
    std::unique_ptr<Group> mine = alone();
    std::unique_ptr<Group> theirs = alone();
    std::vector<float> values = std::vector<float>(6, 1.5F);
};
INSTANTIATE_TEST_SUITE_P(Ways, Offers, ::testing::Bool());

TEST_P(Offers, Status) {
    auto out = publish({{"a", layout_of("f32[6]"), std::as_bytes(std::span(values)), {}},
                        {"b", layout_of("f32[2,3]"), std::as_bytes(std::span(values)), {}}});
    ASSERT_TRUE(out) << describe(out.error());
    const auto tensors = offered(out->endpoint());
    ASSERT_TRUE(tensors) << describe(tensors.error());
    ASSERT_EQ(tensors->size(), 2U);
    EXPECT_EQ((*tensors)[1].name, "b");
    EXPECT_EQ((*tensors)[1].layout, layout_of("f32[2,3]"));

    const RankStatus fresh = status(out->endpoint()).value().at(0);
    EXPECT_EQ(fresh.newest, 0);
    EXPECT_EQ(fresh.tile_bytes, 48);
    EXPECT_TRUE(fresh.versions.empty());

    auto into = Subscriber::connect(*theirs, out->endpoint(), std::vector<WantedTensor>{{"b", layout_of("f32[2,3]")}});
    ASSERT_TRUE(into) << describe(into.error());
    for (const Index version : {3, 5, 8}) {
        ASSERT_TRUE(out->commit(version));
        ASSERT_EQ(into->update(minutes(1)).value(), version);
    }
    // The publisher may hear of the last release a little later.
    RankStatus now;
    while (now.reads < 3) now = status(out->endpoint()).value().at(0);
    EXPECT_EQ(now.newest, 8);
    ASSERT_EQ(now.versions.size(), 2U);
    EXPECT_EQ(now.versions[0].version, 5);
    EXPECT_EQ(now.versions[1].state, "ready");
    ASSERT_EQ(now.readers.size(), 1U);
    EXPECT_EQ(now.readers[0].reads, 0);
    EXPECT_EQ(now.readers[0].last, 8);
    EXPECT_EQ(now.readers[0].bytes, 24);
    EXPECT_GT(now.readers[0].seconds, 0);
    EXPECT_EQ(now.readers[0].transport, GetParam() ? "tcp" : "memory");
    EXPECT_EQ(now.readers[0].peer.starts_with(GetParam() ? "127.0.0.1:" : fmt::format("process {}", getpid())), true)
        << now.readers[0].peer;

    into = Result<Subscriber>(fail(Code::usage, "it leaves"));
    while (!now.readers.empty()) now = status(out->endpoint()).value().at(0);
    EXPECT_EQ(now.reads, 3);  // they still count
    EXPECT_EQ(out->status().reads, 3);
}

TEST_P(Offers, NobodyListens) {
    const std::string endpoint = GetParam() ? "127.0.0.1:1" : folder + "/none";
    EXPECT_NE(status(endpoint, milliseconds(1)).error().message.find("cannot connect to"), std::string::npos);
    EXPECT_NE(offered(endpoint, milliseconds(1)).error().message.find("cannot connect to"), std::string::npos);
}

TEST_P(Offers, ACastOnTheWay) {
    auto out = publish({{"half", layout_of("bf16[6]"), std::as_bytes(std::span(values)), DType::f32},
                        {"wide", layout_of("f64[6]"), std::as_bytes(std::span(values)), DType::f32}});
    ASSERT_TRUE(out) << describe(out.error());
    auto into =
        Subscriber::connect(*theirs, out->endpoint(),
                            std::vector<WantedTensor>{{"wide", layout_of("f64[6]")}, {"half", layout_of("bf16[6]")}});
    ASSERT_TRUE(into) << describe(into.error());
    for (const float value : {1.5F, 1.00390625F, -3.0e38F}) {  // the second is halfway between two bf16
        std::ranges::fill(values, value);
        ASSERT_TRUE(out->commit(out->newest() + 1));
        ASSERT_TRUE(into->update(minutes(1)));
        double wide = 0;
        std::uint16_t half = 0;
        for (std::size_t i = 0; i < 6; ++i) {
            std::memcpy(&wide, into->tile(0).value().data() + i * sizeof wide, sizeof wide);
            std::memcpy(&half, into->tile(1).value().data() + i * sizeof half, sizeof half);
            EXPECT_EQ(wide, static_cast<double>(value));
            EXPECT_EQ(half, value == 1.5F ? 0x3FC0 : value > 0 ? 0x3F80 : 0xFF62) << value;
        }
    }
    EXPECT_EQ(publish({{"i", layout_of("i32[6]"), std::as_bytes(std::span(values)), DType::f32}}).error().message,
              "tensor i is f32 and cannot be cast to i32");
    EXPECT_EQ(
        publish({{"h", layout_of("bf16[6]"), std::as_bytes(std::span(values)).first(12), DType::f32}}).error().code,
        Code::mismatch);
}

// Each subscriber takes the type that it wants, of some tensors, and every version anew.
TEST_P(Offers, ACastAtTheReader) {
    std::vector<std::int8_t> small(6);
    auto out = publish({{"a", layout_of("f32[6]"), std::as_bytes(std::span(values)), {}},
                        {"b", layout_of("i8[2,3]"), std::as_bytes(std::span(small)), {}}});
    ASSERT_TRUE(out) << describe(out.error());
    std::vector<double> arrived;
    Index bytes = 0;
    SubscribeOptions options;
    options.progress = [&](Index, Index all) { bytes = all; };
    options.arrived = [&](std::size_t tensor, std::span<const std::byte> tile) {
        if (tensor == 1) std::memcpy(arrived.data(), tile.data(), tile.size());
    };
    const auto connect = [&](const std::vector<WantedTensor>& wanted) {
        return Subscriber::connect(*theirs, out->endpoint(), wanted, options);
    };
    auto into = connect({{"b", layout_of("i32[2,3]")}, {"a", layout_of("f64[6]")}});
    ASSERT_TRUE(into) << describe(into.error());
    auto half = Subscriber::connect(*mine, out->endpoint(), std::vector<WantedTensor>{{"a", layout_of("bf16[6]")}});
    ASSERT_TRUE(half) << describe(half.error());
    for (const int version : {1, 2, 3, 4}) {
        for (std::size_t i = 0; i < 6; ++i) {
            values[i] = 1.00390625F * static_cast<float>(version + static_cast<int>(i));
            small[i] = static_cast<std::int8_t>(version - static_cast<int>(i) * 20);
        }
        ASSERT_TRUE(out->commit(version));
        arrived.assign(6, 0);
        ASSERT_EQ(into->update(minutes(1)).value(), version);
        EXPECT_EQ(bytes, 6 * 5);  // they travel as the publisher has them
        if (version != 2) {
            ASSERT_EQ(half->update(minutes(1)).value(), version);
        }
        for (std::size_t i = 0; i < 6; ++i) {
            std::int32_t wide = 0;
            double large = 0;
            std::memcpy(&wide, into->tile(0).value().data() + i * sizeof wide, sizeof wide);
            std::memcpy(&large, into->tile(1).value().data() + i * sizeof large, sizeof large);
            EXPECT_EQ(wide, small[i]);
            EXPECT_EQ(large, static_cast<double>(values[i]));
            EXPECT_EQ(arrived[i], large);
        }
    }
    std::uint16_t first = 0;
    std::memcpy(&first, half->tile(0).value().data(), sizeof first);
    EXPECT_EQ(first, 0x4080);  // 4 * 1.00390625 = 4.015625, to bf16
    const auto none = connect({{"a", layout_of("i32[6]")}});
    EXPECT_EQ(none.error().code, Code::unsupported);
    EXPECT_EQ(none.error().message, "tensor a is f32 at the publisher and cannot be cast to i32");
    const auto other = connect({{"a", layout_of("bf16[7]")}});
    EXPECT_EQ(other.error().code, Code::mismatch);
}

// A reader keeps the memory of versions mapped, so it must tell one segment from another.
TEST(Segments, AreTold) {
    const auto opened = [](const Segment& segment) { return Descriptor(dup(segment.number())); };
    const Segment one = Segment::make(5000).value();
    const Segment other = Segment::make(5000).value();
    const Segment read = Segment::open(opened(one), 5000).value();
    EXPECT_TRUE(read.is(opened(one)));
    EXPECT_TRUE(one.is(opened(read)));
    EXPECT_FALSE(read.is(opened(other)));
    EXPECT_FALSE(read.is(Descriptor()));
    one.bytes()[4999] = std::byte{7};  // a writer does not make it another one
    EXPECT_TRUE(read.is(opened(one)));
    EXPECT_EQ(read.bytes()[4999], std::byte{7});
}

// A reader of three tensors hears of each when it has come, and of all bytes before the version is active.
TEST_P(Offers, PiecesInTheOrderOfTheTensors) {
    const std::vector<Index> sizes{300000, 0, 7};
    std::vector<std::vector<std::int64_t>> tiles;
    std::vector<PublishedTensor> tensors;
    std::vector<WantedTensor> wanted;
    for (const Index size : sizes) {
        tiles.emplace_back(static_cast<std::size_t>(size));
        const std::string name = fmt::format("t{}", size);
        tensors.push_back({name, layout_of(fmt::format("i64[{}]", size)), std::as_bytes(std::span(tiles.back())), {}});
        wanted.push_back({name, tensors.back().layout});
    }
    auto out = publish(tensors);
    ASSERT_TRUE(out) << describe(out.error());
    std::vector<std::size_t> arrived;
    Index received = 0;
    Index bytes = 0;
    SubscribeOptions options;
    options.progress = [&](Index now, Index all) {
        EXPECT_GE(now, received);
        received = now;
        bytes = all;
    };
    options.arrived = [&](std::size_t tensor, std::span<const std::byte> tile) {
        arrived.push_back(tensor);
        ASSERT_EQ(tile.size(), tiles[tensor].size() * 8);
        if (tensor == 0 && !GetParam()) {
            EXPECT_EQ(received, 300000 * 8);  // the others are not copied yet
        }
        EXPECT_TRUE(tile.empty() || std::memcmp(tile.data(), tiles[tensor].data(), tile.size()) == 0);
    };
    auto into = Subscriber::connect(*theirs, out->endpoint(), wanted, options);
    ASSERT_TRUE(into) << describe(into.error());
    for (const Index version : {1, 2, 3}) {
        for (auto& tile : tiles) std::ranges::fill(tile, version);
        ASSERT_TRUE(out->commit(version));
        received = 0;
        arrived.clear();
        ASSERT_EQ(into->update(minutes(1)).value(), version);
        EXPECT_EQ(arrived, (std::vector<std::size_t>{0, 1, 2}));
        EXPECT_EQ(received, 300007 * 8);
        EXPECT_EQ(bytes, 300007 * 8);
    }
}

// A limit may only be kept or missed by being slower, so the test holds on a busy machine.
TEST_P(Offers, ALimitOfTheRate) {
    std::vector<std::int64_t> elements(250000, 1);  // 2 MB, in 8 pieces; the last one need not wait
    auto out = Publisher::open(
        *mine, GetParam() ? "127.0.0.1:0" : folder + "/weights",
        std::vector<PublishedTensor>{{"w", layout_of("i64[250000]"), std::as_bytes(std::span(elements)), {}}},
        {.bytes_per_second = 10'000'000});
    ASSERT_TRUE(out) << describe(out.error());
    auto into =
        Subscriber::connect(*theirs, out->endpoint(), std::vector<WantedTensor>{{"w", layout_of("i64[250000]")}});
    ASSERT_TRUE(into) << describe(into.error());
    ASSERT_TRUE(out->commit(1));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(into->update(minutes(1)).value(), 1);
    if (GetParam()) {
        EXPECT_GT(std::chrono::steady_clock::now() - start, milliseconds(130));
    }
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), elements.data(), 2000000), 0);
    EXPECT_EQ(
        Publisher::open(*theirs, folder + "/other",
                        std::vector<PublishedTensor>{{"w", layout_of("i64[250000]"), {}, {}}}, {.bytes_per_second = -1})
            .error()
            .code,
        Code::usage);
}

// A reader that is slow keeps its version. Then a commit fails at the limit, and the next ones go on when it has read.
TEST_P(Offers, ALimitOfTheMemory) {
    const auto publish_within = [&](Index bytes) {
        return Publisher::open(
            *mine, GetParam() ? "127.0.0.1:0" : folder + "/weights",
            std::vector<PublishedTensor>{{"w", layout_of("f32[6]"), std::as_bytes(std::span(values)), {}}},
            {.memory_bytes = bytes});
    };
    EXPECT_EQ(publish_within(215).error().message,
              "a limit of 215 bytes of memory; wanted 0 for no limit, or at least 216 for 3 versions");
    auto out = publish_within(216);
    ASSERT_TRUE(out) << describe(out.error());
    Index version = 1;
    SubscribeOptions options;
    options.arrived = [&](std::size_t, std::span<const std::byte>) {
        if (version != 1) return;
        ASSERT_TRUE(out->commit(++version));
        ASSERT_TRUE(out->commit(++version));
        const auto full = out->commit(++version);
        ASSERT_FALSE(full);
        EXPECT_EQ(full.error().message,
                  "another version needs 72 bytes beside 3 that are kept, from 1 on; the limit is 216 bytes for all");
    };
    auto into =
        Subscriber::connect(*theirs, out->endpoint(), std::vector<WantedTensor>{{"w", layout_of("f32[6]")}}, options);
    ASSERT_TRUE(into) << describe(into.error());
    ASSERT_TRUE(out->commit(1));
    EXPECT_EQ(into->update(minutes(1)).value(), 1);
    EXPECT_EQ(into->update(minutes(1)).value(), 3);
    while (!out->commit(++version)) continue;  // the publisher hears of the end of a read a little later
    EXPECT_EQ(into->update(minutes(1)).value(), version);
}

TEST(Rate, Limit) {
    using std::chrono::seconds;
    const auto zero = Clock::time_point{} + minutes(1);
    RateLimit none(0);
    none.spend(index_max, zero);
    EXPECT_TRUE(none.allows(zero));
    RateLimit limit(1000);
    EXPECT_TRUE(limit.allows(zero));
    limit.spend(5000, zero);  // 20 ms may be caught up with
    EXPECT_FALSE(limit.allows(zero + milliseconds(4979)));
    EXPECT_TRUE(limit.allows(zero + milliseconds(4980)));
    limit.spend(5000, zero + milliseconds(4980));
    EXPECT_EQ(limit.next(), zero + milliseconds(9980));
    limit.spend(1, zero + seconds(100));
    EXPECT_EQ(limit.next(), zero + seconds(100) - milliseconds(19));
}

TEST(Rules, OfBothEnds) {
    const std::vector<ListedTensor> list{
        {"l.0.q", DType::f32, {8, 6}}, {"l.1.q", DType::f32, {8, 6}}, {"norm", DType::f32, {6}}};
    const auto placed = published_by_rules("source x=4\nl.{n}.q = [x, -]\notherwise = -\n", list);
    ASSERT_TRUE(placed) << describe(placed.error());
    ASSERT_EQ(placed->size(), 3U);
    EXPECT_EQ(format((*placed)[1].layout), "f32[8@x,6]");
    const auto wanted = wanted_by_rules("target tp=2\nlayers.{n}.query = [-, tp] <- l.{n}.q\ndrop norm\n", *placed);
    ASSERT_TRUE(wanted) << describe(wanted.error());
    ASSERT_EQ(wanted->size(), 2U);
    EXPECT_EQ((*wanted)[1].name, "layers.1.query");
    EXPECT_EQ((*wanted)[1].wanted.name, "l.1.q");
    EXPECT_EQ(format((*wanted)[1].wanted.layout), "f32[8,6@tp]");
    const auto both = wanted_by_rules("target tp=2\nboth = - <- l.0.q + l.1.q\ndrop norm\n", *placed);
    ASSERT_TRUE(both) << describe(both.error());
    ASSERT_EQ((*both)[0].wanted.parts.size(), 2U);
    EXPECT_EQ((*both)[0].wanted.parts[1].name, "l.1.q");
    EXPECT_EQ((*both)[0].wanted.parts[1].move.target.box, (Box{{8, 16}, {0, 6}}));
    const auto owned = wanted_by_rules("target tp=2\nl.{n:2}.q = [{n}@tp, -, -]\ndrop norm\n", *placed);
    ASSERT_FALSE(owned);
    EXPECT_EQ(owned.error().code, Code::unsupported) << describe(owned.error());
    EXPECT_EQ(wanted_by_rules("source x=2\notherwise = -\n", *placed).error().code, Code::usage);
    EXPECT_EQ(published_by_rules("target x=2\notherwise = -\n", list).error().code, Code::usage);
    EXPECT_TRUE(wanted_by_rules("source x=2\notherwise = -\ntarget tp=2\notherwise = -\n", *placed));
    EXPECT_FALSE(wanted_by_rules("target tp=2\nnone = -\n", *placed));
}

// The answer of a stranger must not be taken for a status.
TEST(ReadLog, OfText) {
    RankStatus status{7,
                      96,
                      4,
                      {{6, "releasing"}, {7, "active"}},
                      {{"process 12", 6, 5, 48, 0.25, "memory"}, {"[::1]:80", 0, 0, 0, 0}}};
    const auto again = status_of(text_of(status));
    ASSERT_TRUE(again);
    EXPECT_EQ(text_of(*again), text_of(status));
    EXPECT_EQ(again->readers[0].peer, "process 12");
    EXPECT_EQ(again->readers[0].seconds, 0.25);
    EXPECT_EQ(again->readers[0].transport, "memory");
    for (const char* const text :
         {"", "rank 1 2", "version 1 ready\n", "rank 1 2 3\nversion x ready\n", "rank 1 2 3\nreader 1 2\n",
          "rank 1 2 3\nrank 1 2 3\n", "rank 1 2 3\n\n", "GET / HTTP/1.0\n"})
        EXPECT_FALSE(status_of(text)) << text;
}

}  // namespace
}  // namespace reshard::live
