// The way over TCP and UCX: endpoints, and strangers at the port. session_test.cpp moves arrays over both.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/socket.h>

#include <cstring>

#include "live/row_walk.hpp"
#include "live/transport/puts.hpp"
#include "live/transport/socket.hpp"
#include "reshard/live/publish.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/text.hpp"

namespace reshard::live {
namespace {

using std::chrono::minutes;

class Tcp : public ::testing::Test {
protected:
    Layout layout = parse_layout(parse_mesh("x=1").value(), "i64[6]").value();
    std::vector<std::int64_t> values = std::vector<std::int64_t>(6, 1);
    std::unique_ptr<Group> mine = alone();
    std::unique_ptr<Group> theirs = alone();
};

// Rows that a stranger sends must not reach memory that is no tile.
TEST(Rows, OfAStranger) {
    const std::vector<Index> tiles{100, 8};
    const auto read = [&](const std::vector<Index>& numbers) {
        return rows_of({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Index)}, tiles);
    };
    EXPECT_TRUE(read({}));
    EXPECT_TRUE(read({0, 4, 8, 12, 8}));  // to byte 100
    EXPECT_EQ(bytes_of(*read({0, 4, 8, 12, 8, 1, 0, 8, 1, 0})), 104);
    for (const auto& wrong : std::vector<std::vector<Index>>{{0, 5, 8, 12, 8},
                                                             {0, 4, 8, 13, 8},
                                                             {1, 0, 9, 1, 0},
                                                             {2, 0, 1, 1, 0},
                                                             {-1, 0, 1, 1, 0},
                                                             {0, -8, 8, 1, 0},
                                                             {0, 8, 8, 2, -8},
                                                             {0, 0, 0, 1, 0},
                                                             {0, 0, 8, 0, 0},
                                                             {0, 0, 8, index_max, index_max},
                                                             {0, index_max, index_max, 1, 0},
                                                             {0, 0, 8, 1}})
        EXPECT_FALSE(read(wrong)) << fmt::format("{} {}", wrong[0], wrong[1]);
}

TEST_F(Tcp, Endpoints) {
    const std::vector<PublishedTensor> tensors{{"w", layout, std::as_bytes(std::span(values))}};
    auto out = Publisher::open(*mine, "127.0.0.1:0", tensors);
    ASSERT_TRUE(out) << describe(out.error());
    const std::string endpoint = out->endpoint();
    EXPECT_TRUE(endpoint.starts_with("127.0.0.1:")) << endpoint;
    EXPECT_NE(Publisher::open(*mine, endpoint, tensors).error().message.find("cannot listen at"), std::string::npos);
    EXPECT_EQ(Publisher::open(*mine, "nothing", tensors).error().code, Code::usage);
    auto into = Subscriber::connect(*theirs, endpoint, std::vector<WantedTensor>{{"w", layout}});
    ASSERT_TRUE(into) << describe(into.error());
    ASSERT_TRUE(out->commit(1));
    EXPECT_EQ(into->update(minutes(1)).value(), 1);
    out = Result<Publisher>(fail(Code::usage, "it leaves"));
    EXPECT_EQ(into->update(minutes(1)).error().message, "rank 0 of the publisher is lost: its connection is closed");
    EXPECT_EQ(std::memcmp(into->tile(0).value().data(), values.data(), 48), 0);
}

// A stranger at the port of a publisher is sent away, and harms nobody.
TEST_F(Tcp, AStrangerAtThePort) {
    const std::vector<PublishedTensor> tensors{{"w", layout, std::as_bytes(std::span(values))}};
    auto out = Publisher::open(*mine, "127.0.0.1:0", tensors);
    ASSERT_TRUE(out->commit(1));
    const auto end = Clock::now() + minutes(1);
    for (const std::string& words :
         {std::string(500, 'x'), std::string("GET / HTTP/1.0\r\n\r\n") + std::string(99, ' ')}) {
        const auto stranger = connect_to(out->endpoint(), Kind::stream, end).value();
        ASSERT_EQ(send(stranger.number(), words.data(), words.size(), 0), std::ssize(words));
        char bytes[4096];
        const int number = stranger.number();
        ssize_t came = 1;
        while (came > 0) {  // the greeting, and then the end
            ASSERT_TRUE(wait_readable({&number, 1}, end));
            came = recv(number, bytes, sizeof bytes, 0);
        }
    }
    auto into = Subscriber::connect(*theirs, out->endpoint(), std::vector<WantedTensor>{{"w", layout}});
    ASSERT_TRUE(into) << describe(into.error());
    EXPECT_EQ(into->update(minutes(1)).value(), 1);
}

// Both ends use UCX if the publisher asks for it, and the status says so. Without RDMA nobody uses it unasked.
TEST_F(Tcp, TheTransportThatRuns) {
    const bool has_ucx = open_ucx(Devices::any).has_value();
    for (const Transport asked : {Transport::automatic, Transport::tcp, Transport::ucx}) {
        auto out = Publisher::open(*mine, "127.0.0.1:0",
                                   std::vector<PublishedTensor>{{"w", layout, std::as_bytes(std::span(values))}},
                                   {.transport = asked});
        if (asked == Transport::ucx && !has_ucx) {
            EXPECT_EQ(out.error().code, Code::unsupported);
            GTEST_SKIP() << out.error().message;
        }
        ASSERT_TRUE(out) << describe(out.error());
        auto into = Subscriber::connect(*theirs, out->endpoint(), std::vector<WantedTensor>{{"w", layout}});
        ASSERT_TRUE(into) << describe(into.error());
        for (Index version = 1; version < 30; ++version) {  // more than the chunks that are under way at once
            values.assign(6, version);
            ASSERT_TRUE(out->commit(version));
            ASSERT_EQ(into->update(minutes(1)).value(), version);
            ASSERT_EQ(std::memcmp(into->tile(0).value().data(), values.data(), 48), 0);
        }
        const bool by_ucx =
            asked == Transport::ucx || (asked == Transport::automatic && open_ucx(Devices::rdma).has_value());
        EXPECT_EQ(out->status().readers.at(0).transport, by_ucx ? "ucx" : "tcp");
    }
}

}  // namespace
}  // namespace reshard::live
