// Every kernel that this processor runs, and sweeps over several memories, compared with naive loops.
#include <gtest/gtest.h>
#include <fstream>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <random>

#include "src/copy/kernels/dispatch.hpp"
#include "src/copy/multi_copy.hpp"
#include "support/random_bytes.hpp"

namespace reshard {
namespace {

using test::below;
using test::Bytes;
using test::Random;
using test::random_bytes;

constexpr std::array<Store, 2> stores = {Store::cached, Store::streaming};

void expect_rows(Random& random, const CopyKernels& kernels, Store store) {
    Rows rows{1 + below(random, 5), 1 + below(random, below(random, 2) == 0 ? 80 : 3000), 0, 0};
    rows.source_stride = rows.bytes + below(random, 100);
    rows.target_stride = rows.bytes + (below(random, 2) == 0 ? 0 : below(random, 100));
    const Index source_start = below(random, 70);
    const Index target_start = below(random, 70);
    const Bytes source = random_bytes(random, source_start + rows.count * rows.source_stride);
    Bytes target = random_bytes(random, target_start + rows.count * rows.target_stride);
    Bytes wanted = target;
    for (Index i = 0; i < rows.count; ++i) {
        std::memcpy(wanted.data() + target_start + i * rows.target_stride,
                    source.data() + source_start + i * rows.source_stride, static_cast<std::size_t>(rows.bytes));
    }
    kernels.rows[static_cast<std::size_t>(store)](rows, source.data() + source_start, target.data() + target_start);
    store_fence();
    ASSERT_EQ(target, wanted) << kernels.name << ", " << rows.count << " runs of " << rows.bytes;
}

void expect_plane(Random& random, const CopyKernels& kernels, Store store, std::size_t log_unit) {
    const Index unit = Index{1} << log_unit;
    Plane plane{1 + below(random, 150), 1 + below(random, 300), 0, 0};
    plane.source_stride = unit * plane.outer + (below(random, 2) == 0 ? 0 : below(random, 100));
    plane.target_stride = unit * plane.inner + below(random, 100);
    if (below(random, 2) == 0) plane.target_stride = (plane.target_stride + 63) / 64 * 64;
    const Index source_start = below(random, 70);
    const Index target_start = below(random, 3) * 16 + (below(random, 4) == 0 ? below(random, 9) : 0);
    const Bytes source = random_bytes(random, source_start + plane.inner * plane.source_stride);
    Bytes target = random_bytes(random, target_start + plane.outer * plane.target_stride);
    Bytes wanted = target;
    for (Index i = 0; i < plane.outer; ++i) {
        for (Index j = 0; j < plane.inner; ++j) {
            std::memcpy(wanted.data() + target_start + i * plane.target_stride + j * unit,
                        source.data() + source_start + j * plane.source_stride + i * unit,
                        static_cast<std::size_t>(unit));
        }
    }
    kernels.transpose[static_cast<std::size_t>(store)][log_unit](plane, source.data() + source_start,
                                                                 target.data() + target_start);
    store_fence();
    ASSERT_EQ(target, wanted) << kernels.name << ", " << plane.outer << " x " << plane.inner << " units of " << unit;
}

TEST(Kernels, RowsOfAnyLengthAndAlignment) {
    Random random(1);
    for (const CopyKernels* kernels : all_copy_kernels()) {
        for (int i = 0; i < 400; ++i) ASSERT_NO_FATAL_FAILURE(expect_rows(random, *kernels, stores[i % 2]));
    }
}

TEST(Kernels, PlanesOfEveryElementSize) {
    Random random(2);
    for (const CopyKernels* kernels : all_copy_kernels()) {
        for (std::size_t i = 0; i < 300; ++i) {
            ASSERT_NO_FATAL_FAILURE(expect_plane(random, *kernels, stores[i % 2], i % 5));
        }
    }
}

// Largest words and keys, so that no sum may lose a carry.
void expect_products(Random& random, const CopyKernels& kernels, std::size_t pass) {
    __extension__ using Wide = unsigned __int128;
    const Index lines = below(random, 65);
    const Index start = below(random, 70);
    const auto words = static_cast<std::size_t>(lines * 16);
    std::vector<std::uint32_t> keys(words + 5, 0xffffffffU);
    Bytes source(static_cast<std::size_t>(start) + words * 4, std::byte{0xff});
    if (below(random, 3) > 0) {
        source = random_bytes(random, std::ssize(source));
        for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random());
    }
    const auto first_key = static_cast<std::size_t>(below(random, 5));
    Bytes target(words * 4 + 128);
    std::byte* const line = target.data() + (-reinterpret_cast<std::uintptr_t>(target.data()) & 63U);
    std::byte* const to = pass == 1 ? line + below(random, 64) : line;
    const ProductSum sum =
        kernels.sum_products[pass](keys.data() + first_key, source.data() + start, pass == 0 ? nullptr : to, lines);
    store_fence();
    Wide wanted = 0;
    for (std::size_t i = 0; i < words; ++i) {
        std::uint32_t word = 0;
        std::memcpy(&word, source.data() + static_cast<std::size_t>(start) + i * 4, sizeof word);
        wanted += Wide{word} * keys[first_key + i];
    }
    ASSERT_TRUE(Wide{sum.low} + (Wide{sum.high} << 32) == wanted) << kernels.name << ", " << lines << " lines";
    const bool copied = pass == 0 || std::memcmp(to, source.data() + start, words * 4) == 0;
    ASSERT_TRUE(copied) << kernels.name << ", " << lines << " lines";
}

TEST(Kernels, ProductsOfKeysAndWords) {
    Random random(4);
    for (const CopyKernels* kernels : all_copy_kernels())
        for (std::size_t i = 0; i < 300; ++i) ASSERT_NO_FATAL_FAILURE(expect_products(random, *kernels, i % 3));
}

TEST(Kernels, ThePlainOnesAreAlwaysThere) {
    ASSERT_FALSE(all_copy_kernels().empty());
    EXPECT_EQ(all_copy_kernels().front(), &copy_kernels());
}

// One cache of one core: never the sum over a processor that has several.
TEST(Kernels, TheLastCacheIsTheSystemsNumber) {
    EXPECT_GT(last_cache_bytes(), 0);
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
    std::int64_t kibibytes = 0;
    if (file >> kibibytes && kibibytes > 0) {
        EXPECT_EQ(last_cache_bytes(), kibibytes << 10);
    }
}

// A tile with its rows dealt out to several memories, each with its own order of dimensions.
struct Dealt {
    std::vector<Region> of_tile;
    std::vector<Region> of_other;
    std::vector<std::size_t> memory;
    Index tile_bytes = 0;
    std::vector<Index> other_bytes;
};

Region region(Index offset, Index element_bytes, std::vector<Index> extents, std::vector<Index> strides) {
    return {offset, element_bytes, std::move(extents), std::move(strides)};
}

Dealt random_dealt(Random& random) {
    const Index size = Index{1} << below(random, 5);
    const std::array<Index, 3> shape = {1 + below(random, 9), 1 + below(random, 70), 1 + below(random, 70)};
    const Index memories = 1 + below(random, 4);
    const Index block = 1 + below(random, 8);  // rows go to the memories in turn, block by block
    Dealt dealt;
    dealt.tile_bytes = shape[0] * shape[1] * shape[2] * size;
    dealt.other_bytes.assign(static_cast<std::size_t>(memories), dealt.tile_bytes);
    const bool turned = below(random, 2) == 0;
    for (Index row = 0; row < shape[1]; row += block) {
        const Index rows = std::min(block, shape[1] - row);
        const std::array<Index, 3> tile_strides = {shape[1] * shape[2] * size, shape[2] * size, size};
        const std::array<Index, 3> turned_strides = {size, shape[0] * size, shape[0] * shape[1] * size};
        const auto& strides = turned ? turned_strides : tile_strides;
        dealt.of_tile.push_back(region(row * tile_strides[1], size, {shape[0], rows, shape[2]},
                                       {tile_strides.begin(), tile_strides.end()}));
        dealt.of_other.push_back(
            region(row * strides[1], size, {shape[0], rows, shape[2]}, {strides.begin(), strides.end()}));
        dealt.memory.push_back(static_cast<std::size_t>(row / block % memories));
    }
    return dealt;
}

// Both faces of a dimension, as halos have them: thin boxes far apart, dense in the other memories.
Dealt random_faces(Random& random) {
    const Index size = Index{1} << below(random, 5);
    const bool long_rows = below(random, 2) == 0;  // longer than a page
    const std::array<Index, 3> shape = {1 + below(random, 40), 1 + below(random, 40),
                                        long_rows ? 5000 / size + below(random, 100) : 5 + below(random, 30)};
    const std::array<Index, 3> strides = {shape[1] * shape[2] * size, shape[2] * size, size};
    const std::size_t dim = below(random, 3) == 0 ? 1 : 2;
    const Index thick = std::min(1 + below(random, 2), shape[dim]);
    Dealt dealt;
    dealt.tile_bytes = shape[0] * strides[0];
    dealt.other_bytes.assign(2, 0);
    for (const Index place : {Index{0}, shape[dim] - thick}) {
        if (place > 0 && place < thick) continue;  // they would overlap
        std::vector<Index> extents(shape.begin(), shape.end());
        extents[dim] = thick;
        const std::size_t memory = static_cast<std::size_t>(below(random, 2));
        dealt.of_tile.push_back(region(place * strides[dim], size, extents, {strides.begin(), strides.end()}));
        dealt.of_other.push_back(region(dealt.other_bytes[memory], size, extents,
                                        {extents[1] * extents[2] * size, extents[2] * size, size}));
        dealt.memory.push_back(memory);
        dealt.other_bytes[memory] += bytes_of(dealt.of_other.back());
    }
    return dealt;
}

void expect_sweep(Random& random, const Dealt& dealt, MultiCopy::Kind kind, Store store) {
    const bool push = kind == MultiCopy::Kind::push;
    Bytes tile = random_bytes(random, dealt.tile_bytes);
    std::vector<Bytes> others;
    for (const Index bytes : dealt.other_bytes) others.push_back(random_bytes(random, bytes));
    Bytes tile_wanted = tile;
    std::vector<Bytes> others_wanted = others;
    MultiCopy sweep(kind);
    Index bytes = 0;
    for (std::size_t i = 0; i < dealt.memory.size(); ++i) {
        const std::size_t m = dealt.memory[i];
        bytes += bytes_of(dealt.of_tile[i]);
        if (push) {
            sweep.add(m, dealt.of_tile[i], dealt.of_other[i]);
            BoxCopy(dealt.of_tile[i], dealt.of_other[i]).run(tile.data(), others_wanted[m].data());
        } else {
            sweep.add(m, dealt.of_other[i], dealt.of_tile[i]);
            BoxCopy(dealt.of_other[i], dealt.of_tile[i]).run(others[m].data(), tile_wanted.data());
        }
    }
    sweep.arrange();
    ASSERT_EQ(sweep.bytes(), bytes);
    std::vector<std::byte*> written;
    std::vector<const std::byte*> read;
    for (Bytes& other : others) {
        written.push_back(other.data());
        read.push_back(other.data());
    }
    for (int run = 0; run < 2; ++run) {
        if (push) {
            sweep.push(tile.data(), written, store);
        } else {
            sweep.pull(tile.data(), read, store);
        }
    }
    store_fence();
    ASSERT_EQ(tile, tile_wanted);
    ASSERT_EQ(others, others_wanted);
}

TEST(Sweeps, AsBoxByBox) {
    Random random(3);
    for (int i = 0; i < 450; ++i) {
        SCOPED_TRACE(i);
        const auto kind = i % 2 == 0 ? MultiCopy::Kind::push : MultiCopy::Kind::pull;
        const Dealt dealt = i % 3 == 0 ? random_faces(random) : random_dealt(random);
        ASSERT_NO_FATAL_FAILURE(expect_sweep(random, dealt, kind, stores[static_cast<std::size_t>(i / 2 % 2)]));
    }
}

// Target runs of several blocks begin anywhere in a cache line, as in registered memory. No byte beside them changes.
TEST(Sweeps, TransposedRunsAtAnyOffset) {
    Random random(29);
    for (int i = 0; i < 120; ++i) {
        const Index unit = Index{1} << below(random, 5);
        const Index rows = 2048 / unit + below(random, 3 * 2048 / unit);  // one run of the target
        const Index columns = 1 + below(random, 40);
        const Index offset = below(random, 3) == 0 ? below(random, 64) : below(random, 64 / unit) * unit;
        const Index apart = (rows * unit + 63) / 64 * 64 + (below(random, 3) == 0 ? unit : 0);
        SCOPED_TRACE(
            fmt::format("{} rows of {} elements of {} bytes, {} bytes into a line", rows, columns, unit, offset));
        const Region from = region(0, unit, {rows, columns}, {columns * unit, unit});
        const Region to = region(offset, unit, {rows, columns}, {unit, apart});
        const Bytes source = random_bytes(random, rows * columns * unit);
        Bytes target = random_bytes(random, offset + columns * apart);
        Bytes wanted = target;
        BoxCopy(from, to).run(source.data(), wanted.data());
        MultiCopy sweep(i % 2 == 0 ? MultiCopy::Kind::push : MultiCopy::Kind::pull);
        sweep.add(0, from, to);
        sweep.arrange();
        if (i % 2 == 0) {
            sweep.push(source.data(), std::array<std::byte*, 1>{target.data()}, Store::streaming);
        } else {
            sweep.pull(target.data(), std::array<const std::byte*, 1>{source.data()}, Store::streaming);
        }
        store_fence();
        ASSERT_EQ(target, wanted);
    }
}

TEST(Sweeps, MemoriesThatAreNotThereAreLeftOut) {
    MultiCopy sweep(MultiCopy::Kind::push);
    sweep.add(0, region(0, 1, {4}, {1}), region(0, 1, {4}, {1}));
    sweep.add(1, region(4, 1, {4}, {1}), region(0, 1, {4}, {1}));
    sweep.arrange();
    const Bytes tile(8, std::byte{7});
    Bytes other(4, std::byte{1});
    const std::array<std::byte*, 2> others = {nullptr, other.data()};
    sweep.push(tile.data(), others, Store::cached);
    EXPECT_EQ(other, Bytes(4, std::byte{7}));
}

}  // namespace
}  // namespace reshard
