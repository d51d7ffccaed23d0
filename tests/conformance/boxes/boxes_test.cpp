// Exchanges of boxes on a backend, against an oracle that looks at each element, and errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/boxes/drawn.hpp"
#include "conformance/drawn_cases.hpp"
#include "conformance/harness.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Bytes;
using test::Random;

// The memory of one array on one rank. It is the backend's own memory in half of the arrays.
class Field {
public:
    Field(const DrawnBoxes& drawn, const BoxExchange& exchange, Backend& backend, std::size_t array)
        : bytes_(size_of(drawn.table.dtype)), array_(array) {
        const auto rank = static_cast<std::size_t>(backend.rank());
        const RankBoxes& boxes = drawn.table.ranks[rank];
        have_ = places_in(drawn.table.shape, boxes.have, drawn.storages[rank].have);
        want_ = places_in(drawn.table.shape, boxes.want, drawn.storages[rank].want);
        own_source_.resize(static_cast<std::size_t>(exchange.have_bytes()));
        own_target_.resize(static_cast<std::size_t>(exchange.want_bytes()));
        source_ = own_source_;
        target_ = own_target_;
        if (array % 2 == 0) return;
        allocated_source_ = backend.allocate(exchange.have_bytes() + 1).value();
        allocated_target_ = backend.allocate(exchange.want_bytes() + 1).value();
        source_ = allocated_source_->bytes().first(source_.size());
        target_ = allocated_target_->bytes().first(target_.size());
    }
    [[nodiscard]] Buffers buffers() const { return {source_, target_, {}}; }

    void prepare(Index run) {
        for (std::size_t i = 0; i < target_.size(); ++i) target_[i] = static_cast<std::byte>(0xa0 + i % 7);
        expected_.assign(target_.begin(), target_.end());
        for (const auto& [element, place] : have_) put(source_, place, element, run);
        for (const auto& [element, place] : want_) put(expected_, place, element, run);
    }
    [[nodiscard]] bool is_right() const { return std::ranges::equal(target_, expected_); }

private:
    void put(std::span<std::byte> memory, Index place, Index element, Index run) const {
        const auto value = static_cast<std::uint64_t>(element + 1) * 0x9e3779b97f4a7c15U +
                           static_cast<std::uint64_t>(run) + 100 * array_;
        std::memcpy(memory.data() + place * bytes_, &value, static_cast<std::size_t>(bytes_));
    }

    Index bytes_;
    std::size_t array_;
    std::vector<std::pair<Index, Index>> have_;  // element, place
    std::vector<std::pair<Index, Index>> want_;
    Bytes own_source_;
    Bytes own_target_;
    std::unique_ptr<Memory> allocated_source_;
    std::unique_ptr<Memory> allocated_target_;
    std::span<std::byte> source_;
    std::span<std::byte> target_;
    Bytes expected_;
};

// The bytes that no protocol can do without.
Index least_received(const DrawnBoxes& drawn, Index rank) {
    const std::map<Index, Index> owners = owners_of(drawn.table);
    std::set<Index> missing;
    for (const Box& box : drawn.table.ranks[static_cast<std::size_t>(rank)].want)
        for (const Index number : numbers_in(drawn.table.shape, box))
            if (owners.at(number) != rank) missing.insert(number);
    return std::ssize(missing) * size_of(drawn.table.dtype);
}

Result<BoxExchange> prepare(const DrawnBoxes& drawn, Backend& backend) {
    const auto rank = static_cast<std::size_t>(backend.rank());
    if (drawn.known) return BoxExchange::prepare(drawn.table, backend, drawn.storages[rank], drawn.arrays);
    return BoxExchange::prepare(drawn.table.dtype, drawn.table.shape, drawn.table.ranks[rank], backend,
                                drawn.storages[rank], drawn.arrays);
}

void expect_exchange(Backend& backend, const DrawnBoxes& drawn) {
    auto exchange = prepare(drawn, backend);
    ASSERT_TRUE(exchange) << exchange.error().message;
    const Index least = least_received(drawn, backend.rank());
    EXPECT_EQ(exchange->traffic().received_bytes, least * static_cast<Index>(drawn.arrays));
    EXPECT_EQ(traffic_of(drawn.table)[static_cast<std::size_t>(backend.rank())].received_bytes, least);
    std::vector<Field> fields;
    fields.reserve(drawn.arrays);
    std::vector<Buffers> buffers;
    for (std::size_t array = 0; array < drawn.arrays; ++array) {
        fields.emplace_back(drawn, *exchange, backend, array);
        buffers.push_back(fields.back().buffers());
    }
    auto bound = exchange->bind(buffers);
    ASSERT_TRUE(bound) << bound.error().message;
    expect_two_runs(**bound, fields, backend.rank());
}

TEST(Boxes, EveryWantedElementIsRightAndNothingElseIsTouched) {
    expect_each(draw_cases([](Random& random) { return draw_boxes(random, harness().ranks()); }), expect_exchange);
}

// Rank r owns row r of a matrix and wants the row below it, the last rank the first row.
BoxTable rows(Index ranks) {
    BoxTable table{DType::i32, {ranks, 3}, {}};
    for (Index rank = 0; rank < ranks; ++rank) {
        const Index next = (rank + 1) % ranks;
        table.ranks.push_back({{{{rank, rank + 1}, {0, 3}}}, {{{next, next + 1}, {0, 3}}}});
    }
    return table;
}

TEST(Boxes, RunMovesOneArray) {
    harness().on_every_rank([&](Backend& backend) {
        const BoxTable table = rows(backend.size());
        auto exchange = BoxExchange::prepare(DType::i32, table.shape,
                                             table.ranks[static_cast<std::size_t>(backend.rank())], backend);
        ASSERT_TRUE(exchange) << exchange.error().message;
        const int rank = static_cast<int>(backend.rank());
        const std::vector<int> have = {rank, rank + 100, rank + 200};
        std::vector<int> want(3, -1);
        const auto done = exchange->run(have, want);
        ASSERT_TRUE(done) << done.error().message;
        const int next = (rank + 1) % static_cast<int>(backend.size());
        EXPECT_EQ(want, (std::vector<int>{next, next + 100, next + 200}));
        const auto other = exchange->run(std::vector<float>(3), want);
        ASSERT_FALSE(other);
        EXPECT_EQ(other.error().message, "elements of f32 were given for boxes of i32");
    });
}

// Expects that every rank fails with this message, on prepare or on the first run.
void expect_refused(const BoxTable& table, const std::string& message) {
    harness().on_every_rank([&](Backend& backend) {
        auto made = BoxExchange::prepare(table.dtype, table.shape,
                                         table.ranks[static_cast<std::size_t>(backend.rank())], backend);
        std::vector<int> memory(100, 0);
        std::vector<int> have(100, 0);
        const auto done = made ? made->run(have, memory) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch);
        EXPECT_NE(done.error().message.find(message), std::string::npos) << done.error().message;
    });
}

TEST(Boxes, AnElementWithTwoOwnersIsNamed) {
    if (harness().ranks() < 2) GTEST_SKIP() << "two owners are two ranks here";
    BoxTable table = rows(harness().ranks());
    table.ranks[1].have.push_back({{0, 1}, {2, 3}});
    const auto valid = validate(table);
    ASSERT_FALSE(valid);
    EXPECT_EQ(valid.error().message, "element [0, 2] is owned twice: by box 0 of rank 0 and by box 1 of rank 1");
    expect_refused(table, "element [0, 2] is owned twice");
}

TEST(Boxes, AnElementThatNobodyOwnsIsNamed) {
    BoxTable table = rows(harness().ranks());
    table.ranks.front().have.front()[1] = {0, 1};
    const auto valid = validate(table);
    ASSERT_FALSE(valid);
    const Index wants = harness().ranks() - 1;
    EXPECT_EQ(valid.error().message, fmt::format("no rank owns element [0, 1], which rank {} wants", wants));
    expect_refused(table, "no rank owns element [0, 1]");
}

TEST(Boxes, BoxesOutsideTheArrayAreRefused) {
    BoxTable table = rows(harness().ranks());
    table.ranks.back().want.front()[1] = {1, 4};
    expect_refused(table, "which lies outside of the shape");
    table.ranks.back().want.front() = {{0, 1}};
    expect_refused(table, "of 1 dimensions, the array has 2");
}

TEST(Boxes, RanksWithOtherShapesAreToldSo) {
    if (harness().ranks() < 2) GTEST_SKIP() << "one rank agrees with itself";
    harness().on_every_rank([&](Backend& backend) {
        const Index extent = backend.rank() == 1 ? 7 : 8;
        auto table = BoxTable{DType::i32, {extent}, {{{}, {}}}};
        table.ranks.resize(static_cast<std::size_t>(backend.size()));
        auto made = BoxExchange::prepare(table, backend);
        const auto done = made ? made->run(std::vector<int>(), std::span<int>()) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch) << done.error().message;
    });
}

TEST(Boxes, PlacesAndBuffersThatDoNotFitAreRefused) {
    harness().on_every_rank([&](Backend& backend) {
        BoxTable table{DType::i32, {4}, {}};
        table.ranks.resize(static_cast<std::size_t>(backend.size()));
        table.ranks.front() = {{{{0, 4}}}, {{{0, 2}}, {{1, 3}}}};
        const bool first = backend.rank() == 0;
        // Every second place for both boxes, from the places 0 and 2 on.
        const BoxStorages woven = first ? BoxStorages{{}, {{0, {2}}, {2, {2}}}} : BoxStorages{};
        auto made = BoxExchange::prepare(table, backend, woven);
        std::vector<int> have(4, 0);
        std::vector<int> want(3, 0);
        auto done = made ? made->run(have, want) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("wanted box 1 writes element 2 of the buffer"), std::string::npos)
            << done.error().message;
    });
    harness().on_every_rank([&](Backend& backend) {
        BoxTable table = rows(backend.size());
        auto exchange = BoxExchange::prepare(table, backend);
        ASSERT_TRUE(exchange) << exchange.error().message;
        std::vector<int> memory(6, 0);
        const auto bytes = std::as_writable_bytes(std::span(memory));
        const auto bind = [&](std::span<std::byte> have, std::span<std::byte> want) {
            const Buffers buffers{have, want, {}};
            const auto bound = exchange->bind(std::span(&buffers, 1));
            return bound ? std::string() : bound.error().message;
        };
        EXPECT_EQ(bind(bytes.first(12), bytes.last(8)),
                  "the memory of wanted boxes of array 0 needs 12 bytes, the buffer has 8");
        EXPECT_EQ(bind(bytes.first(16), bytes.subspan(8, 12)),
                  "the memory of owned boxes of array 0 and the memory of wanted boxes of array 0 overlap in memory");
        EXPECT_EQ(bind(bytes.first(12), bytes.last(12)), "");  // a rank whose buffers were wrong may try again
    });
}

}  // namespace
}  // namespace reshard::conformance
