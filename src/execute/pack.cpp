#include "reshard/model/pack.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "src/model/row_end.hpp"

namespace reshard {

namespace {

// Bytes that a thread copies before it takes the next part.
constexpr Index part_bytes = Index{1} << 20;

template <class Tiles>
Result<void> fit(std::span<const Row> rows, const Tiles& tiles, RowSide side, Index wanted, std::size_t packed) {
    if (static_cast<std::uint64_t>(wanted) > packed)
        return fail(Code::mismatch, fmt::format("the rows have {} bytes, the packed buffer {}", wanted, packed));
    for (const Row& row : rows) RESHARD_CHECK(end_within(tiles, row, side));
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
void move_part(std::span<const Row> rows, const std::vector<Index>& starts, Index begin, Index end, RowSide side,
               const Copy& copy) {
    auto at = static_cast<std::size_t>(std::ranges::upper_bound(starts, begin) - starts.begin()) - 1;
    for (; at < rows.size() && starts[at] < end; ++at) {
        const Row& row = rows[at];
        const RowEnd place = end_of(row, side);
        const Index from = std::max(begin - starts[at], Index{0});
        const Index to = std::min(end - starts[at], row.runs * row.run_bytes);
        for_each_piece(row, from, to, [&](Index run, Index runs, Index inside, Index bytes) {
            copy(row, place.offset + run * place.stride + inside, starts[at] + run * row.run_bytes + inside, runs,
                 bytes);
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
Result<void> carry_out(std::span<const Row> rows, const Tiles& tiles, RowSide side, std::size_t packed, int threads,
                       const Copy& copy) {
    if (threads < 1) return fail(Code::usage, fmt::format("{} threads; at least 1 is needed", threads));
    RESHARD_TRY(const auto total, packed_bytes(rows));
    RESHARD_CHECK(fit(rows, tiles, side, total, packed));
    const std::vector<Index> starts = starts_of(rows);
    share(total, threads, [&](Index begin, Index end) { move_part(rows, starts, begin, end, side, copy); });
    return {};
}

}  // namespace

Result<void> pack(std::span<const Row> rows, std::span<const std::span<const std::byte>> tiles,
                  std::span<std::byte> packed, int threads) {
    return carry_out(rows, tiles, RowSide::send, packed.size(), threads,
                     [&](const Row& row, Index in_tile, Index in_stream, Index runs, Index bytes) {
                         copy_kernels().rows[0]({runs, bytes, row.source_stride, bytes},
                                                tiles[static_cast<std::size_t>(row.array)].data() + in_tile,
                                                packed.data() + in_stream);
                     });
}

Result<void> unpack(std::span<const Row> rows, std::span<const std::byte> packed,
                    std::span<const std::span<std::byte>> tiles, int threads) {
    return carry_out(rows, tiles, RowSide::receive, packed.size(), threads,
                     [&](const Row& row, Index in_tile, Index in_stream, Index runs, Index bytes) {
                         copy_kernels().rows[0]({runs, bytes, bytes, row.target_stride}, packed.data() + in_stream,
                                                tiles[static_cast<std::size_t>(row.array)].data() + in_tile);
                     });
}

}  // namespace reshard
