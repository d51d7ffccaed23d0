#include "reshard/model/pack.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard {

namespace {

// Bytes that a thread copies before it takes the next part.
constexpr Index part_bytes = Index{1} << 20;

// The bytes of a row from the first run's start in its tile.
Result<Index> reach(const Row& row, Index offset, Index stride) {
    const auto steps = checked_multiply(stride, row.runs - 1);
    const auto last = steps ? checked_add(offset, *steps) : std::nullopt;
    const auto end = last ? checked_add(*last, row.run_bytes) : std::nullopt;
    if (!end) return fail(Code::overflow, "a row reaches past 64 bits");
    return *end;
}

// The members of a row that say where its runs lie at one end.
struct Place {
    Index Row::*offset;
    Index Row::*stride;
};
constexpr Place source_end{&Row::source_offset, &Row::source_stride};
constexpr Place target_end{&Row::target_offset, &Row::target_stride};

template <class Tiles>
Result<void> fit(std::span<const Row> rows, const Tiles& tiles, Place place, Index wanted, std::size_t packed) {
    if (static_cast<std::uint64_t>(wanted) > packed)
        return fail(Code::mismatch, fmt::format("the rows have {} bytes, the packed buffer {}", wanted, packed));
    for (const Row& row : rows) {
        if (row.array >= std::ssize(tiles))
            return fail(Code::mismatch, fmt::format("a row of array {}; there are {} tiles", row.array, tiles.size()));
        RESHARD_TRY(const auto last, reach(row, row.*place.offset, row.*place.stride));
        const std::size_t held = tiles[static_cast<std::size_t>(row.array)].size();
        if (static_cast<std::uint64_t>(last) > held)
            return fail(Code::mismatch,
                        fmt::format("a row of array {} ends at byte {}; the tile has {} bytes", row.array, last, held));
    }
    return {};
}

// The start of each row in the packed stream.
std::vector<Index> starts_of(std::span<const Row> rows) {
    std::vector<Index> starts;
    starts.reserve(rows.size());
    Index start = 0;
    for (const Row& row : rows) {
        starts.push_back(start);
        start += row.runs * row.run_bytes;
    }
    return starts;
}

// Calls move(first run, runs, byte in the run, bytes of each) for the row's bytes [begin, end): whole runs together,
// and parts of runs at both place.
template <class Move>
void for_each_piece(const Row& row, Index begin, Index end, const Move& move) {
    while (begin < end) {
        const Index run = begin / row.run_bytes;
        const Index inside = begin % row.run_bytes;
        const Index whole = inside == 0 ? (end - begin) / row.run_bytes : 0;
        const Index bytes = whole > 0 ? row.run_bytes : std::min(row.run_bytes - inside, end - begin);
        const Index runs = std::max<Index>(whole, 1);
        move(run, runs, inside, bytes);
        begin += runs * bytes;
    }
}

// Copies bytes [begin, end) of the packed stream. `copy(row, offset in the tile, offset in the stream, runs, bytes)`
// moves runs that are dense in the stream.
template <class Copy>
void move_part(std::span<const Row> rows, const std::vector<Index>& starts, Index begin, Index end, Place place,
               const Copy& copy) {
    auto at = static_cast<std::size_t>(std::ranges::upper_bound(starts, begin) - starts.begin()) - 1;
    for (; at < rows.size() && starts[at] < end; ++at) {
        const Row& row = rows[at];
        const Index from = std::max(begin - starts[at], Index{0});
        const Index to = std::min(end - starts[at], row.runs * row.run_bytes);
        for_each_piece(row, from, to, [&](Index run, Index runs, Index inside, Index bytes) {
            copy(row, row.*place.offset + run * row.*place.stride + inside, starts[at] + run * row.run_bytes + inside,
                 runs, bytes);
        });
    }
}

// Calls work(begin, end) for all parts of [0, total), on at most `threads` threads.
template <class Work>
void share(Index total, int threads, const Work& work) {
    const Index parts = ceil_divide(total, part_bytes);
    std::atomic<Index> next{0};
    const auto run = [&] {
        for (Index part = next++; part < parts; part = next++)
            work(part * part_bytes, std::min(total, (part + 1) * part_bytes));
    };
    std::vector<std::thread> others;
    for (Index i = 1; i < std::min<Index>(threads, parts); ++i) {
        try {
            others.emplace_back(run);
        } catch (const std::system_error&) {
            break;  // the threads that were started do the work
        }
    }
    run();
    for (std::thread& other : others) other.join();
}

template <class Tiles, class Copy>
Result<void> carry_out(std::span<const Row> rows, const Tiles& tiles, Place place, std::size_t packed, int threads,
                       const Copy& copy) {
    if (threads < 1) return fail(Code::usage, fmt::format("{} threads; at least 1 is needed", threads));
    RESHARD_TRY(const auto total, packed_bytes(rows));
    RESHARD_CHECK(fit(rows, tiles, place, total, packed));
    const std::vector<Index> starts = starts_of(rows);
    share(total, threads, [&](Index begin, Index end) { move_part(rows, starts, begin, end, place, copy); });
    return {};
}

}  // namespace

Result<void> pack(std::span<const Row> rows, std::span<const std::span<const std::byte>> tiles,
                  std::span<std::byte> packed, int threads) {
    return carry_out(rows, tiles, source_end, packed.size(), threads,
                     [&](const Row& row, Index in_tile, Index in_stream, Index runs, Index bytes) {
                         copy_kernels().rows[0]({runs, bytes, row.source_stride, bytes},
                                                tiles[static_cast<std::size_t>(row.array)].data() + in_tile,
                                                packed.data() + in_stream);
                     });
}

Result<void> unpack(std::span<const Row> rows, std::span<const std::byte> packed,
                    std::span<const std::span<std::byte>> tiles, int threads) {
    return carry_out(rows, tiles, target_end, packed.size(), threads,
                     [&](const Row& row, Index in_tile, Index in_stream, Index runs, Index bytes) {
                         copy_kernels().rows[0]({runs, bytes, bytes, row.target_stride}, packed.data() + in_stream,
                                                tiles[static_cast<std::size_t>(row.array)].data() + in_tile);
                     });
}

}  // namespace reshard
