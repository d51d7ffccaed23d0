// Rows as transports take them: with addresses, packed, in buckets, direct or packed, and in the caller's storages.
#include <gtest/gtest.h>

#include "reshard/model/address.hpp"
#include "reshard/model/pack.hpp"
#include "reshard/text.hpp"
#include "rows/memory.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

std::uint64_t address_of(const std::vector<std::byte>& tile) { return reinterpret_cast<std::uint64_t>(tile.data()); }

std::string message(const auto& result) { return result ? "" : result.error().message; }

// A random move: its schedule, the bytes of the source tiles and the wanted bytes of the target tiles.
struct Move {
    RowSchedule schedule;
    Index ranks = 0;
    Memory sources;
    Memory wanted;
    std::string question;
};

std::optional<Move> drawn(std::uint64_t seed) {
    const Index ranks = 1 + static_cast<Index>(seed % 7);
    const std::string question = random_question(seed, ranks);
    const Problem problem = problem_of(question);
    if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty()) return std::nullopt;
    return Move{RowSchedule::make(std::span(&problem, 1)).value(), ranks,
                tiles_of(problem.source, ranks, value_of_byte), tiles_of(problem.target, ranks, value_of_byte),
                question};
}

std::vector<Row> with_peer(const std::vector<Row>& rows, Index peer) {
    std::vector<Row> kept;
    std::ranges::copy_if(rows, std::back_inserter(kept), [&](const Row& row) { return row.peer == peer; });
    return kept;
}

// Calls visit(move) for random moves.
void for_each_move(int count, const std::function<void(const Move&)>& visit) {
    for (std::uint64_t seed = drawn_seed(); count > 0; ++seed) {
        const auto move = drawn(seed);
        if (!move) continue;
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, move->question));
        visit(*move);
        if (testing::Test::HasFailure()) return;
        --count;
    }
}

TEST(RowTransport, AddressesOfBothEndsMoveTheBytes) {
    for_each_move(cases(300), [](const Move& move) {
        Memory targets = blank_of(move.wanted);
        std::vector<std::uint64_t> source_bases, target_bases;
        static std::byte nothing;  // an empty tile has an address too
        for (const auto& tile : move.sources)
            source_bases.push_back(tile.empty() ? reinterpret_cast<std::uint64_t>(&nothing) : address_of(tile));
        for (const auto& tile : targets)
            target_bases.push_back(tile.empty() ? reinterpret_cast<std::uint64_t>(&nothing) : address_of(tile));
        const std::vector<std::uint64_t> devices = {7, 6, 5, 4, 3, 2, 1};
        for (Index rank = 0; rank < move.ranks; ++rank) {
            const auto at = static_cast<std::size_t>(rank);
            const std::vector<Row> rows = move.schedule.rows(rank);
            const auto sent =
                addressed(rows, RowSide::send, {{&source_bases[at], 1}, 9}, {target_bases, 1, devices}).value();
            ASSERT_EQ(sent.local.size(), rows.size());
            const auto from = blocks_of(sent.local).value();
            const auto to = blocks_of(sent.remote).value();
            ASSERT_EQ(from.size(), to.size());
            for (std::size_t i = 0; i < from.size(); ++i) {
                ASSERT_EQ(from[i].bytes, to[i].bytes);
                std::memcpy(reinterpret_cast<void*>(to[i].address), reinterpret_cast<const void*>(from[i].address),
                            from[i].bytes);
            }
            for (std::size_t i = 0; i < rows.size(); ++i) {
                EXPECT_EQ(sent.local[i].device, 9U);
                EXPECT_EQ(sent.remote[i].device, devices[static_cast<std::size_t>(rows[i].peer)]);
                if (rows[i].runs == 1) {
                    EXPECT_EQ(sent.local[i].stride, sent.local[i].bytes);
                }
            }
            // A get by the receiver has the same addresses, with local and remote exchanged.
            const std::vector<Row> gets = move.schedule.rows(rank, RowSide::receive);
            const auto got = addressed(gets, RowSide::receive, {{&target_bases[at], 1}}, {source_bases, 1}).value();
            for (std::size_t i = 0; i < gets.size(); ++i) {
                EXPECT_EQ(got.local[i].address, target_bases[at] + static_cast<std::uint64_t>(gets[i].target_offset));
                EXPECT_EQ(got.remote[i].address, source_bases[static_cast<std::size_t>(gets[i].peer)] +
                                                     static_cast<std::uint64_t>(gets[i].source_offset));
            }
        }
        EXPECT_EQ(targets, move.wanted);
    });
}

TEST(RowTransport, AddressesThatAreMissingAreErrors) {
    const std::vector<Row> rows = {{1, 2, 8, 16, 4, 3, 8, 4}};
    const std::vector<std::uint64_t> own = {100, 200}, peers = {1, 2, 3, 4, 5, 600};
    const auto both = addressed(rows, RowSide::send, {own}, {peers, 2}).value();
    EXPECT_EQ(both.local, (std::vector<StridedMemory>{{208, 4, 0, 8, 3}}));
    EXPECT_EQ(both.remote, (std::vector<StridedMemory>{{616, 4, 0, 4, 3}}));
    EXPECT_EQ(blocks_of(both.local).value(), (std::vector<MemoryBlock>{{208, 4}, {216, 4}, {224, 4}}));
    const std::vector<std::uint64_t> none = {100, 0}, far = {1, 2, 3, 4, 5, UINT64_MAX - 20};
    EXPECT_EQ(message(addressed(rows, RowSide::send, {std::span(own).first(1)}, {peers, 2})),
              "a row of array 1; there are own addresses of 1");
    EXPECT_EQ(message(addressed(rows, RowSide::send, {none}, {peers, 2})), "array 1 has no own address");
    EXPECT_EQ(message(addressed(rows, RowSide::send, {own}, {std::span(peers).first(4), 2})),
              "a row of array 1 and peer 2; there are addresses of 2 arrays and 2 ranks");
    EXPECT_EQ(addressed(rows, RowSide::send, {own}, {far, 2}).error().code, Code::overflow);
    const std::vector<Row> negative = {{1, 2, -8, 16, 4, 3, 8, 4}};
    EXPECT_EQ(addressed(negative, RowSide::send, {own}, {peers, 2}).error().code, Code::mismatch);
    const std::vector<StridedMemory> many = {{0, 1, 0, 1, UINT32_MAX}, {0, 1, 0, 1, 1}};
    EXPECT_EQ(blocks_of(many).error().code, Code::unsupported);
}

TEST(RowTransport, PackedAndUnpackedBytesAreTheTargetsBytes) {
    for_each_move(cases(300), [](const Move& move) {
        Memory targets = blank_of(move.wanted);
        for (Index receiver = 0; receiver < move.ranks; ++receiver)
            for (Index sender = 0; sender < move.ranks; ++sender) {
                const std::vector<Row> sent = with_peer(move.schedule.rows(sender), receiver);
                const std::vector<Row> received = with_peer(move.schedule.rows(receiver, RowSide::receive), sender);
                std::vector<std::byte> staging(static_cast<std::size_t>(packed_bytes(sent).value()));
                const std::span<const std::byte> source = move.sources[static_cast<std::size_t>(sender)];
                const std::span<std::byte> target = targets[static_cast<std::size_t>(receiver)];
                ASSERT_EQ(message(pack(sent, {&source, 1}, staging)), "");
                ASSERT_EQ(message(unpack(received, staging, {&target, 1})), "");
            }
        EXPECT_EQ(targets, move.wanted);
    });
}

// Larger than the part that a thread takes, so that parts begin and end within runs.
TEST(RowTransport, ThreadsShareRowsAndRuns) {
    std::vector<std::byte> source(7'000'003);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    const std::vector<Row> rows = {{0, 0, 1, 0, 3'000'001, 1, 0, 0},
                                   {1, 0, 5, 1, 7, 200'000, 11, 9},
                                   {0, 0, 0, 4'000'000, 1'000'003, 2, 2'000'001, 1'000'003}};
    const std::vector<std::span<const std::byte>> tiles = {source, source};
    std::vector<std::byte> wanted;
    for (const Row& row : rows)
        for (Index i = 0; i < row.runs; ++i) {
            const auto run = source.begin() + row.source_offset + i * row.source_stride;
            wanted.insert(wanted.end(), run, run + row.run_bytes);
        }
    for (const int threads : {1, 2, 5}) {
        std::vector<std::byte> packed(wanted.size());
        ASSERT_EQ(message(pack(rows, tiles, packed, threads)), "");
        ASSERT_EQ(packed, wanted);
        std::vector<std::vector<std::byte>> targets(2, std::vector<std::byte>(source.size(), std::byte{0xee}));
        auto expected = targets;
        const std::vector<std::span<std::byte>> into = {targets[0], targets[1]};
        ASSERT_EQ(message(unpack(rows, packed, into, threads)), "");
        auto next = wanted.begin();
        for (const Row& row : rows)
            for (Index i = 0; i < row.runs; ++i, next += row.run_bytes)
                std::copy(
                    next, next + row.run_bytes,
                    expected[static_cast<std::size_t>(row.array)].begin() + row.target_offset + i * row.target_stride);
        ASSERT_EQ(targets, expected);
    }
}

TEST(RowTransport, PackRefusesWhatDoesNotFit) {
    std::vector<std::byte> tile(20), staging(12, std::byte{1});
    const std::span<const std::byte> source = tile;
    const auto packed = [&](const Row& row, std::size_t bytes = 12, int threads = 1) {
        return message(pack({&row, 1}, {&source, 1}, std::span(staging).first(bytes), threads));
    };
    const Row fits{0, 0, 0, 0, 4, 3, 8, 4};
    EXPECT_EQ(packed({1, 0, 0, 0, 4, 1, 0, 0}), "a row of array 1; there are 1 tiles");
    EXPECT_EQ(packed({0, 0, 1, 0, 4, 3, 8, 4}), "a row of array 0 ends at byte 21; the tile has 20 bytes");
    EXPECT_EQ(packed(fits, 11), "the rows have 12 bytes, the packed buffer 11");
    EXPECT_EQ(packed(fits, 12, 0), "0 threads; at least 1 is needed");
    EXPECT_NE(packed({0, 0, -1, 0, 4, 1, 0, 0}), "");
    EXPECT_NE(packed({0, 0, 0, 0, 4, 0, 0, 0}), "");
    EXPECT_NE(packed({0, 0, 0, 0, 4, index_max / 2, 8, 4}), "");
    EXPECT_NE(packed({0, 0, 0, 0, 1, 3, index_max / 2, 4}), "");
    EXPECT_EQ(staging, std::vector<std::byte>(12, std::byte{1}));
    EXPECT_EQ(packed(fits), "");
    EXPECT_EQ(staging, std::vector<std::byte>(12));
}

TEST(RowTransport, BucketsHoldAllRunsInOrder) {
    for_each_move(cases(200), [](const Move& move) {
        for (const Index size : {1, 3, 17, 4096})
            for (Index rank = 0; rank < move.ranks; ++rank) {
                const std::vector<Row> rows = move.schedule.rows(rank);
                std::vector<Row> joined;
                const auto buckets = buckets_of(rows, size).value();
                for (const std::vector<Row>& bucket : buckets) {
                    const Index bytes = packed_bytes(bucket).value();
                    EXPECT_TRUE(0 < bytes && bytes <= size);
                    joined.insert(joined.end(), bucket.begin(), bucket.end());
                }
                const std::span<const std::byte> source = move.sources[static_cast<std::size_t>(rank)];
                std::vector<std::byte> whole(static_cast<std::size_t>(packed_bytes(rows).value()));
                std::vector<std::byte> parts(whole.size());
                ASSERT_EQ(message(pack(rows, {&source, 1}, whole)), "");
                ASSERT_EQ(message(pack(joined, {&source, 1}, parts)), "");
                EXPECT_EQ(whole, parts);
            }
    });
    EXPECT_NE(message(buckets_of({}, 0)), "");
}

TEST(RowTransport, ShortRunsArePackedAndLongRunsAreNot) {
    // A message takes 20 us in both ways. Directly, a run takes 10 us and 1 GB/s; packed, 10 ns and 0.8 GB/s.
    const TransferCosts costs{{20'000'000, 10'000'000, 1'000'000'000}, {20'000'000, 10'000, 800'000'000}};
    const std::vector<Row> rows = {{0, 0, 0, 0, 1152, 100, 2304, 1152},
                                   {0, 1, 0, 0, 1152, 1000, 2304, 1152},
                                   {1, 2, 0, 0, 1 << 20, 4, 1 << 21, 1 << 20}};
    const auto chosen = choose_transfers(rows, 0, costs, 1 << 20).value();
    ASSERT_EQ(chosen.size(), 2U);
    EXPECT_EQ(chosen[0], (PeerTransfer{1, true, 1'152'000, 1000, 11'172'000'000, 1'490'000'000}));
    EXPECT_EQ(chosen[1].peer, 2);
    EXPECT_FALSE(chosen[1].packed);
    for (const WayCosts wrong : {WayCosts{-1, 1, 1}, {1, -1, 1}, {1, 1, 0}}) {
        EXPECT_NE(message(choose_transfers(rows, 0, {wrong, costs.packed}, 1)), "");
        EXPECT_NE(message(choose_transfers(rows, 0, {costs.direct, wrong}, 1)), "");
    }
    EXPECT_EQ(message(choose_transfers(rows, 0, costs, 0)), "the size of a bucket is 0; at least 1 is needed");
}

TEST(RowTransport, StoragesAsText) {
    const Layout layout = parse_layout(Mesh{{"x", 2}}, "f32[4,6@x,8]").value();
    const auto storages = [&](std::string_view text) { return parse_storages(layout, text); };
    EXPECT_EQ(storages("").value(), std::vector<Storage>());
    EXPECT_EQ(storages("order 0,1,2").value(), std::vector<Storage>(2, row_major(tile(layout, 0))));
    EXPECT_EQ(storages("order 1,0,2").value(), std::vector<Storage>(2, {0, {8, 32, 1}}));
    EXPECT_EQ(storages("strides 64,8,1 offset 5").value(), std::vector<Storage>(2, {5, {64, 8, 1}}));
    EXPECT_EQ(storages("strides 64,8,1; strides 24,8,1").value(),
              (std::vector<Storage>{{0, {64, 8, 1}}, {0, {24, 8, 1}}}));
    for (const char* wrong : {"order 0,1", "order 0,1,1", "order 0,1,3", "strides 1,2", "columns", "order 0,1,2 x",
                              "strides 1,2,3;strides 1,2,3;strides 1,2,3", "strides 1,2,3 offset", "order"})
        EXPECT_NE(message(storages(wrong)), "") << wrong;
}

TEST(RowTransport, AListInStorages) {
    const Mesh mesh{{"x", 2}};
    const Problem one{parse_layout(mesh, "u8[4@x,6]").value(), parse_layout(mesh, "u8[4,6@x]").value()};
    const std::vector<Problem> list = {one, one, one};
    const RankStorages columns{parse_storages(one.source, "order 1,0").value(), {}};
    const std::vector<RankStorages> storages = {columns, {}, columns};
    const RowSchedule made = RowSchedule::make(list, storages).value();
    EXPECT_EQ(made.question_count(), 2U);
    std::vector<Row> wanted;
    for (Index array = 0; array < 3; ++array)
        for (Row row : RowSchedule::make(one, storages[static_cast<std::size_t>(array)])->rows(1)) {
            row.array = array;
            wanted.push_back(row);
        }
    EXPECT_EQ(made.rows(1), wanted);
    EXPECT_NE(message(RowSchedule::make(list, std::span(storages).first(2))), "");
}

}  // namespace
}  // namespace reshard::test
