// Digests that add. reshard/model/digest.hpp has the formula.
#include "reshard/model/digest.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "src/model/digest_sum.hpp"
#include "src/model/row_end.hpp"
#include "src/model/tile_places.hpp"

namespace reshard {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Index block_bytes = 4096;
constexpr Index word_bytes = 4;
constexpr std::size_t block_words = block_bytes / word_bytes;

std::uint64_t reduced(Wide number) {
    std::uint64_t sum = static_cast<std::uint64_t>(number & Digest::prime);
    for (number >>= 61; number != 0; number >>= 61) sum += static_cast<std::uint64_t>(number & Digest::prime);
    while (sum >= Digest::prime) sum -= Digest::prime;
    return sum;
}

std::uint64_t added(std::uint64_t a, std::uint64_t b) { return reduced(Wide{a} + b); }

constexpr std::uint64_t word(Index number) { return static_cast<std::uint64_t>(number); }
std::uint64_t address(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }
std::size_t word_of(Index position) { return static_cast<std::size_t>(position % block_bytes / word_bytes); }

}  // namespace

Digest& Digest::operator+=(const Digest& other) {
    sum = added(sum, other.sum);
    bytes += other.bytes;
    return *this;
}

Digest& Digest::operator-=(const Digest& other) {
    sum = added(sum, prime - other.sum);
    bytes -= other.bytes;
    return *this;
}

Digest operator*(Index copies, const Digest& one) {
    return {reduced(Wide{one.sum} * static_cast<std::uint64_t>(copies)), copies * one.bytes};
}

struct DigestKeys::Tables {
    std::uint64_t arrays = 0;                                  // from it come the keys of arrays
    std::array<std::uint32_t, block_words> values;             // T
    std::array<std::uint32_t, block_words> places;             // S
    std::array<std::uint64_t, block_words + 1> places_before;  // sums of S
};

DigestKeys::DigestKeys(std::uint64_t seed) {
    const auto tables = std::make_shared<Tables>();
    const std::uint64_t base = mixed(seed);
    const auto key = [base](std::size_t number) {
        return std::max(static_cast<std::uint32_t>(mixed(base, number) >> 32), std::uint32_t{1});
    };
    tables->places_before[0] = 0;
    for (std::size_t i = 0; i < block_words; ++i) {
        tables->values[i] = key(i);
        tables->places[i] = key(block_words + i);
        tables->places_before[i + 1] = tables->places_before[i] + tables->places[i];
    }
    tables->arrays = mixed(base, 2 * block_words);
    tables_ = tables;
}

Store summed_store_for(Index bytes) {
    // memcpy streams from about this size on. A cached copy must keep up with it.
    constexpr Index streamed_bytes = Index{16} << 20;
    return bytes >= streamed_bytes ? Store::streaming : store_for(bytes);
}

DigestSum::DigestSum(const DigestKeys& keys, Index array)
    : tables_(*keys.tables_), array_(mixed(tables_.arrays, word(array))) {}

// Calls part(position, bytes) for the part in each block.
template <class Part>
void DigestSum::each_part(Index position, Index bytes, const Part& part) {
    total_.bytes += bytes;
    while (bytes > 0) {
        const Index size = std::min(bytes, block_bytes - position % block_bytes);
        enter(position / block_bytes);
        part(position, size);
        position += size;
        bytes -= size;
    }
}

void DigestSum::add(const std::byte* from, Index position, Index bytes) {
    each_part(position, bytes,
              [&](Index at, Index size) { add_part<false>(from + (at - position), nullptr, at, size); });
}

void DigestSum::copy(const std::byte* from, std::byte* to, Index position, Index bytes, Store store) {
    store_ = store;
    if (store == Store::cached || (address(to) - word(position)) % line_bytes == 0) {
        each_part(position, bytes, [&](Index at, Index size) {
            add_part<true>(from + (at - position), to + (at - position), at, size);
        });
        return;
    }
    // The lines of the target are not the lines of the blocks. Each piece is copied, then read from the cache.
    const CopyKernels& kernels = copy_kernels();
    for (Index begin = 0; begin < bytes;) {
        const Index to_line = static_cast<Index>(-address(to + begin) & word(line_bytes - 1));
        const Index size = std::min(bytes - begin, begin == 0 && to_line > 0 ? to_line : block_bytes);
        kernels.rows[static_cast<std::size_t>(store)]({1, size, 0, 0}, from + begin, to + begin);
        add(from + begin, position + begin, size);
        begin += size;
    }
}

Digest DigestSum::total() {
    close_block();
    return total_;
}

// Adds a part of the current block: the end of a word, lines, words, the beginning of a word.
template <bool copies>
void DigestSum::add_part(const std::byte* from, std::byte* to, Index position, Index bytes) {
    const auto advance = [&](Index size) {
        from += size;
        if constexpr (copies) to += size;
        position += size;
        bytes -= size;
    };
    if (const Index skipped = position % word_bytes; skipped > 0) {
        const Index size = std::min(bytes, word_bytes - skipped);
        add_bytes<copies>(from, to, position, size);
        advance(size);
    }
    // Streams begin at a line of the target. The words before it are few.
    if (copies && store_ == Store::streaming) {
        const Index size =
            std::min(bytes, static_cast<Index>(-address(to) & word(line_bytes - 1))) / word_bytes * word_bytes;
        add_words<copies>(from, to, position, size);
        advance(size);
    }
    if (const Index lines = bytes / line_bytes; lines > 0) {
        const std::size_t first = word_of(position);
        const auto pass = !copies ? 0U : store_ == Store::cached ? 1U : 2U;
        const ProductSum sum = copy_kernels().sum_products[pass](tables_.values.data() + first, from, to, lines);
        inner_ += sum.low + (Wide{sum.high} << 32);
        add_places(first, static_cast<std::size_t>(lines * (line_bytes / word_bytes)));
        advance(lines * line_bytes);
    }
    const Index size = bytes / word_bytes * word_bytes;
    add_words<copies>(from, to, position, size);
    advance(size);
    if (bytes > 0) add_bytes<copies>(from, to, position, bytes);
}

void DigestSum::add_places(std::size_t first, std::size_t words) {
    inner_ += Wide{tables_.places_before[first + words] - tables_.places_before[first]} * 0x01010101U;
}

template <bool copies>
void DigestSum::add_words(const std::byte* from, std::byte* to, Index position, Index bytes) {
    if (bytes == 0) return;
    const std::size_t first = word_of(position);
    const auto words = static_cast<std::size_t>(bytes / word_bytes);
    for (std::size_t i = 0; i < words; ++i) {
        std::uint32_t value = 0;
        std::memcpy(&value, from + i * sizeof value, sizeof value);
        if constexpr (copies) std::memcpy(to + i * sizeof value, &value, sizeof value);
        inner_ += std::uint64_t{tables_.values[first + i]} * value;
    }
    add_places(first, words);
}

// pre: the bytes are within one word.
template <bool copies>
void DigestSum::add_bytes(const std::byte* from, std::byte* to, Index position, Index bytes) {
    const std::size_t i = word_of(position);
    std::uint64_t value = 0;
    std::uint64_t places = 0;
    for (Index byte = 0; byte < bytes; ++byte) {
        const auto shift = static_cast<unsigned>(8 * (position % word_bytes + byte));
        value += std::to_integer<std::uint64_t>(from[byte]) << shift;
        places += std::uint64_t{1} << shift;
        if constexpr (copies) to[byte] = from[byte];
    }
    inner_ += tables_.values[i] * value;
    inner_ += tables_.places[i] * places;
}

void DigestSum::enter(Index block) {
    if (block == block_) return;
    close_block();
    block_ = block;
}

void DigestSum::close_block() {
    if (inner_ == 0) return;
    const std::uint64_t key = (mixed(array_, word(block_)) >> 3) % (Digest::prime - 1) + 1;
    total_.sum = added(total_.sum, reduced(Wide{reduced(inner_)} * key));
    inner_ = 0;
}

Digest DigestKeys::of(std::span<const std::byte> bytes, Index position, Index array) const {
    DigestSum sum(*this, array);
    sum.add(bytes.data(), position, std::ssize(bytes));
    return sum.total();
}

Digest DigestKeys::copy(std::span<const std::byte> bytes, std::byte* target, Index position, Index array) const {
    DigestSum sum(*this, array);
    const Store store = summed_store_for(std::ssize(bytes));
    sum.copy(bytes.data(), target, position, std::ssize(bytes), store);
    if (store == Store::streaming) store_fence();
    return sum.total();
}

Result<Digest> digest_rows(const DigestKeys& keys, std::span<const Row> rows,
                           std::span<const std::span<const std::byte>> tiles, RowSide side) {
    Digest total;
    for (std::size_t begin = 0; begin < rows.size();) {
        const Index array = rows[begin].array;
        DigestSum sum(keys, array);
        for (; begin < rows.size() && rows[begin].array == array; ++begin) {
            const Row& row = rows[begin];
            RESHARD_TRY(const auto end, end_within(tiles, row, side));
            const std::byte* const from = tiles[static_cast<std::size_t>(array)].data() + end.offset;
            for (Index run = 0; run < row.runs; ++run)
                sum.add(from + run * end.stride, row.target_offset + run * row.target_stride, row.run_bytes);
        }
        total += sum.total();
    }
    return total;
}

Result<Digest> digest_tile(const DigestKeys& keys, const Layout& layout, Index rank,
                           std::span<const std::byte> tile_bytes, Index array) {
    RESHARD_CHECK(validate(layout));
    if (!layout.unreduced.empty())
        return fail(Code::unsupported, fmt::format("an array in {} summands has no digest", summand_count(layout)));
    const Index wanted = static_cast<Index>(tile_count(layout, rank)) * size_of(layout.dtype);
    if (std::ssize(tile_bytes) != wanted)
        return fail(Code::mismatch,
                    fmt::format("the tile has {} bytes; rank {} holds {}", tile_bytes.size(), rank, wanted));
    DigestSum sum(keys, array);
    const std::byte* from = tile_bytes.data();
    TilePlaces(layout, rank).each(0, wanted, [&](Index position, Index bytes) {
        sum.add(from, position, bytes);
        from += bytes;
    });
    return sum.total();
}

}  // namespace reshard
