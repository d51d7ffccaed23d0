// Digests add over any pieces, agree at both ends of a move, and find faults. RESHARD_LONG=1 injects a million faults.
#include "reshard/model/digest.hpp"

#include <gtest/gtest.h>

#include "rows/memory.hpp"
#include "src/base/hash.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"
#include "support/random_bytes.hpp"

namespace reshard::test {
namespace {

__extension__ using Wide = unsigned __int128;

// The formula of the header, byte by byte.
Digest by_formula(std::uint64_t seed, std::span<const std::byte> bytes, Index position, Index array) {
    const std::uint64_t base = mixed(seed);
    const auto key = [&](std::uint64_t number) { return std::max<std::uint64_t>(mixed(base, number) >> 32, 1); };
    Wide sum = 0;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto p = static_cast<std::uint64_t>(position) + n;
        const std::uint64_t of_array = mixed(mixed(base, 2048), static_cast<std::uint64_t>(array));
        const std::uint64_t of_block = (mixed(of_array, p / 4096) >> 3) % (Digest::prime - 1) + 1;
        const std::uint64_t word = p % 4096 / 4;
        const Wide inner = Wide{key(word)} * std::to_integer<std::uint64_t>(bytes[n]) + key(1024 + word);
        sum = (sum + (inner << (8 * (p % 4))) % Digest::prime * of_block) % Digest::prime;
    }
    return {static_cast<std::uint64_t>(sum), std::ssize(bytes)};
}

// Jobs of two versions compare digests, so the numbers may not change.
TEST(Digest, IsTheFormula) {
    Bytes counted(10000);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<std::byte>(i);
    EXPECT_EQ(DigestKeys().of(counted), (Digest{0x1315c36be2567313U, 10000}));
    Random random(drawn_seed());
    for (int i = 0; i < cases(400); ++i) {
        const std::uint64_t seed = random();
        const Bytes bytes = random_bytes(random, below(random, below(random, 2) == 0 ? 300 : 9000));
        const Index position = below(random, 2) == 0 ? below(random, 10000) : below(random, Index{1} << 62);
        const Index array = below(random, 5);
        ASSERT_EQ(DigestKeys(seed).of(bytes, position, array), by_formula(seed, bytes, position, array))
            << bytes.size() << " bytes at " << position;
    }
}

TEST(Digest, AddsOverPieces) {
    Random random(drawn_seed());
    const DigestKeys keys(7);
    for (int i = 0; i < cases(300); ++i) {
        const Bytes bytes = random_bytes(random, below(random, 20000));
        const Index position = below(random, 10000);
        const Digest whole = keys.of(bytes, position, 3);
        Digest sum;
        for (Index begin = 0; begin < std::ssize(bytes);) {
            const Index size = std::min(1 + below(random, 3000), std::ssize(bytes) - begin);
            sum += keys.of(std::span(bytes).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)),
                           position + begin, 3);
            begin += size;
        }
        ASSERT_EQ(sum, whole);
        ASSERT_EQ(3 * whole, whole + whole + whole);
        ASSERT_EQ(5 * whole - whole, 4 * whole);
        ASSERT_EQ(whole - whole, Digest());
    }
}

TEST(Digest, CopiesAtAnyAlignment) {
    Random random(drawn_seed());
    const DigestKeys keys(8);
    for (int i = 0; i < cases(300); ++i) {
        const bool streams = i < 6;  // past the caches
        const Index size = streams ? (Index{17} << 20) + below(random, 1000) : below(random, 20000);
        const Index start = below(random, 70);
        const Index position = i % 2 == 0 ? start + 64 * below(random, 100) : below(random, 10000);
        const Bytes bytes =
            streams ? Bytes(static_cast<std::size_t>(size), static_cast<std::byte>(i + 1)) : random_bytes(random, size);
        Bytes target(static_cast<std::size_t>(start + size + 64));
        std::byte* const aligned = target.data() + (-reinterpret_cast<std::uintptr_t>(target.data()) & 63U);
        const Digest copied = keys.copy(bytes, aligned + start % 64, position, 1);
        ASSERT_EQ(copied, keys.of(bytes, position, 1));
        ASSERT_EQ(std::memcmp(aligned + start % 64, bytes.data(), bytes.size()), 0);
    }
}

// A move without sums, executed by its rows.
struct Moved {
    Problem problem;
    Index ranks = 0;
    std::vector<std::vector<Row>> sends, receives;
    Memory sources, targets;
};

std::optional<Moved> moved(std::uint64_t seed) {
    Moved one;
    one.ranks = 1 + static_cast<Index>(seed % 8);
    one.problem = problem_of(random_question(seed, one.ranks));
    Problem& problem = one.problem;
    if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty()) return std::nullopt;
    problem.source.dtype = problem.target.dtype = static_cast<DType>(seed / 8 % 17);
    const RowSchedule schedule = RowSchedule::make(std::span(&problem, 1)).value();
    one.sends = all_rows(schedule, one.ranks, RowSide::send);
    one.receives = all_rows(schedule, one.ranks, RowSide::receive);
    one.sources = tiles_of(problem.source, one.ranks, value_of_byte);
    for (Index rank = 0; rank < one.ranks; ++rank)
        one.targets.emplace_back(
            tile_count(problem.target, rank) * static_cast<std::size_t>(size_of(problem.target.dtype)),
            std::byte{0xee});
    auto written = counters_of(one.targets);
    carry_out(one.sends, one.sources, one.targets, written);
    return one;
}

// The digest that the senders have of all bytes for one rank.
Digest sent_to(const Moved& move, const DigestKeys& keys, Index receiver) {
    Digest sum;
    for (std::size_t rank = 0; rank < move.sends.size(); ++rank) {
        std::vector<Row> rows;
        std::ranges::copy_if(move.sends[rank], std::back_inserter(rows),
                             [&](const Row& row) { return row.peer == receiver; });
        const std::span<const std::byte> tile(move.sources[rank]);
        sum += digest_rows(keys, rows, std::span(&tile, 1), RowSide::send).value();
    }
    return sum;
}

Index copies_in(const Layout& layout) { return device_count(layout) / combinations(used_atoms(layout)); }

TEST(Digest, BothEndsOfAMoveAgree) {
    int moves = 0;
    for (std::uint64_t seed = drawn_seed(); moves < cases(400); ++seed) {
        const auto move = moved(seed);
        if (!move) continue;
        ++moves;
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}", seed));
        const DigestKeys keys(seed);
        Digest held, wanted;
        for (Index rank = 0; rank < move->ranks; ++rank) {
            const auto r = static_cast<std::size_t>(rank);
            const std::span<const std::byte> tile(move->targets[r]);
            ASSERT_EQ(sent_to(*move, keys, rank), keys.of(tile));
            ASSERT_EQ(digest_rows(keys, move->receives[r], std::span(&tile, 1), RowSide::receive).value(),
                      keys.of(tile));
            held += digest_tile(keys, move->problem.source, rank, move->sources[r]).value();
            wanted += digest_tile(keys, move->problem.target, rank, tile).value();
        }
        ASSERT_EQ(copies_in(move->problem.target) * held, copies_in(move->problem.source) * wanted);
    }
}

// Damages a tile that has arrived. Returns the kind of the fault, or nullptr if the rows allow no fault of that kind.
const char* damage(Random& random, std::span<const Row> rows, Bytes& tile) {
    const auto any_row = [&] { return rows[static_cast<std::size_t>(below(random, std::ssize(rows)))]; };
    const auto run_of = [&](const Row& row) {
        return tile.data() + row.target_offset + below(random, row.runs) * row.target_stride;
    };
    const Row one = any_row();
    const Row other = any_row();
    std::byte* const at = run_of(one);
    std::byte* const elsewhere = run_of(other);
    const auto size = static_cast<std::size_t>(one.run_bytes);
    const bool apart = one.run_bytes == other.run_bytes && std::abs(at - elsewhere) >= one.run_bytes;
    switch (below(random, 5)) {
        case 0:
            at[below(random, one.run_bytes)] ^= std::byte{1} << static_cast<int>(below(random, 8));
            return "flipped";
        case 1:
            std::fill_n(at, size, std::byte{0xee});
            return "lost";
        case 2:
            for (std::size_t i = 0; i < size; ++i) at[i] ^= static_cast<std::byte>(random());
            return "stale";
        case 3:
            if (!apart) return nullptr;
            std::copy_n(at, size, elsewhere);
            return "doubled";
        default:
            if (!apart) return nullptr;
            std::swap_ranges(at, at + size, elsewhere);
            return "swapped";
    }
}

TEST(Digest, FindsEveryFault) {
    const int wanted = long_run() ? 1'000'000 : cases(30'000);
    std::map<std::string, int> found;
    int faults = 0, missed = 0, harmless = 0;
    for (std::uint64_t seed = drawn_seed() + 1'000'000; faults < wanted; ++seed) {
        const auto move = moved(seed);
        if (!move) continue;
        Random random(seed);
        const DigestKeys keys(seed);
        for (std::size_t rank = 0; rank < move->receives.size(); ++rank) {
            if (move->receives[rank].empty()) continue;
            const Digest right = sent_to(*move, keys, static_cast<Index>(rank));
            Bytes tile = move->targets[rank];
            for (int i = 0; i < 100; ++i) {
                const char* const kind = damage(random, move->receives[rank], tile);
                const bool differs = tile != move->targets[rank];
                const bool seen = keys.of(tile) != right;
                if (differs) ++faults;
                if (differs && seen) ++found[kind];
                if (differs && !seen) ++missed;
                if (!differs) {
                    ++harmless;
                    ASSERT_FALSE(seen) << "RESHARD_SEED=" << seed;
                }
                tile = move->targets[rank];
            }
        }
    }
    std::cout << fmt::format("{} faults, {} missed", faults, missed);
    for (const auto& [kind, count] : found) std::cout << ", " << count << ' ' << kind;
    std::cout << fmt::format("; {} changed nothing\n", harmless);
    EXPECT_EQ(missed, 0);
    EXPECT_EQ(found.size(), 5U);
}

// A row that is lost or sent twice changes the number of bytes, even if all bytes are zero. Equal numbers of lost and
// doubled zeros are found by the keys of their places.
TEST(Digest, CountsRows) {
    const DigestKeys keys;
    const Bytes zeros(256);
    const Digest first = keys.of(zeros, 0);
    const Digest second = keys.of(zeros, 256);
    EXPECT_NE(first, first + second);
    EXPECT_NE(first + second, first + second + second);
    EXPECT_NE(first + first, first + second);
    EXPECT_NE(keys.of(zeros, 0, 0), keys.of(zeros, 0, 1));
    EXPECT_NE(keys.of(zeros), DigestKeys(1).of(zeros));
}

TEST(Digest, RefusesRowsOutsideTiles) {
    const DigestKeys keys;
    const Bytes bytes(64);
    const std::span<const std::byte> tile(bytes);
    const auto fault = [&](const Row& row, RowSide side) {
        const auto digest = digest_rows(keys, std::span(&row, 1), std::span(&tile, 1), side);
        return digest ? std::string("none") : digest.error().message;
    };
    EXPECT_EQ(fault({0, 0, 0, 0, 64, 1, 0, 0}, RowSide::send), "none");
    EXPECT_EQ(fault({0, 0, 60, 0, 8, 1, 0, 0}, RowSide::send),
              "a row of array 0 ends at byte 68; the tile has 64 bytes");
    EXPECT_EQ(fault({0, 0, 0, 0, 8, 9, 0, 8}, RowSide::receive),
              "a row of array 0 ends at byte 72; the tile has 64 bytes");
    EXPECT_NE(fault({0, 0, 0, 0, 8, index_max, 0, index_max}, RowSide::receive), "none");
    EXPECT_NE(fault({0, 0, -8, 0, 8, 1, 0, 0}, RowSide::send), "none");
    EXPECT_EQ(fault({1, 0, 0, 0, 8, 1, 0, 0}, RowSide::send), "a row of array 1; there are 1 tiles");
    const Layout layout = problem_of("x=2\nu8[8@x]\nx=2\nu8[8]").source;
    EXPECT_EQ(digest_tile(keys, layout, 0, tile).error().message, "the tile has 64 bytes; rank 0 holds 4");
    EXPECT_EQ(digest_tile(keys, layout, 5, {}).value(), Digest());
}

}  // namespace
}  // namespace reshard::test
