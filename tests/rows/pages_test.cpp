// Page templates against a loop over layers, tokens, heads and numbers that knows no layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "reshard/model/pages.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Number = std::uint16_t;

constexpr Index layers = 4, head_size = 3, longest = 4096, pages = 300;
constexpr Number blank = 0xeeee;

// The place of the layers: each in memory of its own, within the page, or around all pages.
enum class Layers { apart, inside, outside };

// One end, as the numbers that people give.
struct Shape {
    Index pp = 1, dcp = 1, tp = 1;
    Index interleave = 1;
    Index block = 16;
    bool hnd = false;
    Layers layers_are = Layers::apart;
    Index heads = 8;  // 1: MLA, the same on all ranks of tp
    Index first_rank = 0;
    [[nodiscard]] Index ranks() const { return pp * dcp * tp; }
    [[nodiscard]] Index own_layers() const { return layers / pp; }
    [[nodiscard]] Index own_heads() const { return heads == 1 ? 1 : heads / tp; }
    [[nodiscard]] std::string text() const {
        return fmt::format("pp={} dcp={}/{} tp={} block={} {} layers={} heads={} from rank {}", pp, dcp, interleave, tp,
                           block, hnd ? "HND" : "NHD", static_cast<int>(layers_are), heads, first_rank);
    }
};

PageDims dims_of(const Shape& shape) {
    return {1, shape.layers_are == Layers::apart ? std::optional<std::size_t>(0) : std::nullopt};
}

PagedCache cache_of(const Shape& shape) {
    Mesh mesh{{"pp", shape.pp}, {"dcp", shape.dcp}, {"tp", shape.tp}};
    std::vector<Index> devices(static_cast<std::size_t>(shape.ranks()));
    std::iota(devices.begin(), devices.end(), shape.first_rank);
    mesh.devices = devices;
    PagedCache cache;
    cache.layout =
        parse_layout(mesh, fmt::format("bf16[{}@pp,{}{},{},{}]", layers, longest,
                                       shape.dcp > 1 ? fmt::format("@dcp/{}", shape.interleave) : "",
                                       shape.heads == 1 ? "1" : fmt::format("{}@tp", shape.heads), head_size))
            .value();
    cache.block = shape.block;
    cache.pages = pages;
    const Layout page = page_layout(cache, dims_of(shape));
    if (shape.layers_are == Layers::outside) {
        cache.page_stride = shape.block * shape.own_heads() * head_size;
        cache.storages = parse_storages(page, fmt::format("strides {},{},{},1", pages * cache.page_stride,
                                                          shape.hnd ? head_size : shape.own_heads() * head_size,
                                                          shape.hnd ? shape.block * head_size : head_size))
                             .value();
    } else if (shape.hnd) {
        cache.storages = parse_storages(page, "order 0,2,1,3").value();
    }
    return cache;
}

// The memory of one rank: of each layer, or one for all.
using RankMemory = std::vector<std::vector<Number>>;

Number& number_at(RankMemory& memory, const Shape& shape, Index layer, Index page, Index slot, Index head, Index i) {
    const Index place =
        shape.hnd ? (head * shape.block + slot) * head_size + i : (slot * shape.own_heads() + head) * head_size + i;
    const Index size = shape.block * shape.own_heads() * head_size;
    if (shape.layers_are == Layers::apart)
        return memory[static_cast<std::size_t>(layer)][static_cast<std::size_t>(page * size + place)];
    const Index number = shape.layers_are == Layers::inside ? (page * shape.own_layers() + layer) * size + place
                                                            : (layer * pages + page) * size + place;
    return memory[0][static_cast<std::size_t>(number)];
}

RankMemory blank_memory(const Shape& shape) {
    const Index all = shape.own_layers() * pages * shape.block * shape.own_heads() * head_size;
    const Index parts = shape.layers_are == Layers::apart ? shape.own_layers() : 1;
    return RankMemory(static_cast<std::size_t>(parts),
                      std::vector<Number>(static_cast<std::size_t>(all / parts), blank));
}

Number value_of(Index layer, Index token, Index head, Index i) {
    const Index place = ((layer * longest + token) * 8 + head) * head_size + i;
    const auto value = static_cast<Number>(static_cast<std::uint64_t>(place + 1) * 0x9e3779b97f4a7c15U >> 48);
    return value == blank ? Number{0} : value;
}

// Writes the tokens of a request into the memory of all ranks.
void fill(std::map<Index, RankMemory>& memory, const Shape& shape, const std::vector<Index>& table,
          const Interval& tokens) {
    for (Index place = 0; place < shape.ranks(); ++place) {
        RankMemory& own = memory[shape.first_rank + place];
        const Index tp = place % shape.tp;
        const Index dcp = place / shape.tp % shape.dcp;
        const Index pp = place / shape.tp / shape.dcp;
        Index held = 0;  // tokens before
        for (Index token = 0; token < tokens.end; ++token) {
            if (token / shape.interleave % shape.dcp != dcp) continue;
            const Index page = table[static_cast<std::size_t>(held / shape.block)];
            const Index slot = held++ % shape.block;
            if (token < tokens.begin) continue;
            for (Index layer = 0; layer < shape.own_layers(); ++layer)
                for (Index head = 0; head < shape.own_heads(); ++head)
                    for (Index i = 0; i < head_size; ++i)
                        number_at(own, shape, layer, page, slot, head, i) =
                            value_of(pp * shape.own_layers() + layer, token,
                                     shape.heads == 1 ? 0 : tp * shape.own_heads() + head, i);
        }
    }
}

std::map<Index, RankMemory> blank_end(const Shape& shape) {
    std::map<Index, RankMemory> memory;
    for (Index place = 0; place < shape.ranks(); ++place) memory[shape.first_rank + place] = blank_memory(shape);
    return memory;
}

// The addresses of all ranks of an end, `count` for each rank from 0 on.
std::vector<std::uint64_t> addresses_of(std::map<Index, RankMemory>& memory, std::size_t count) {
    std::vector<std::uint64_t> all;
    for (auto& [rank, parts] : memory) {
        all.resize(static_cast<std::size_t>(rank + 1) * count, 0);
        for (std::size_t i = 0; i < parts.size(); ++i)
            all[static_cast<std::size_t>(rank) * count + i] = reinterpret_cast<std::uint64_t>(parts[i].data());
    }
    return all;
}

std::vector<Index> shuffled_pages(std::mt19937_64& random) {
    std::vector<Index> table(pages);
    std::iota(table.begin(), table.end(), Index{0});
    std::ranges::shuffle(table, random);
    return table;
}

// Copies the rows. Each block must be inside one buffer of each end. Returns the number of bytes.
Index carry_out(const AddressedRows& rows) {
    const auto from = blocks_of(rows.local).value();
    const auto to = blocks_of(rows.remote).value();
    EXPECT_EQ(from.size(), to.size());
    Index bytes = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        EXPECT_EQ(from[i].bytes, to[i].bytes);
        std::memcpy(reinterpret_cast<void*>(to[i].address), reinterpret_cast<const void*>(from[i].address),
                    from[i].bytes);
        bytes += static_cast<Index>(from[i].bytes);
    }
    return bytes;
}

// Moves a request between two caches and compares every number of the target.
void expect_moved(const Shape& source, const Shape& target, const Interval& tokens, std::uint64_t seed) {
    SCOPED_TRACE(fmt::format("{}\n{}\ntokens {}:{}", source.text(), target.text(), tokens.begin, tokens.end));
    std::mt19937_64 random(seed);
    const std::vector<Index> from = shuffled_pages(random), to = shuffled_pages(random);
    auto sources = blank_end(source), targets = blank_end(target), wanted = blank_end(target);
    fill(sources, source, from, {0, tokens.end});
    fill(wanted, target, to, tokens);
    const std::size_t count = std::max(sources.begin()->second.size(), targets.begin()->second.size());
    const auto source_bases = addresses_of(sources, count), target_bases = addresses_of(targets, count);
    const PagedCache from_cache = cache_of(source), to_cache = cache_of(target);
    const PageRequest request{from, to, tokens};
    Index moved = 0;
    std::map<std::pair<Index, Index>, AddressedRows> sent;
    for (auto& [rank, memory] : sources) {
        const auto made = PageTemplate::make(from_cache, to_cache, dims_of(source), rank);
        ASSERT_TRUE(made) << made.error().message;
        const std::span own = std::span(source_bases).subspan(static_cast<std::size_t>(rank) * count, count);
        const auto bound = made->bind(request, {own}, {target_bases, static_cast<Index>(count)});
        ASSERT_TRUE(bound) << bound.error().message;
        moved += carry_out(bound->memory);
        for (const PeerRows& peer : bound->peers) {
            AddressedRows& rows = sent[{rank, peer.peer}];
            rows.local.assign(bound->memory.local.begin() + peer.begin, bound->memory.local.begin() + peer.end);
            rows.remote.assign(bound->memory.remote.begin() + peer.begin, bound->memory.remote.begin() + peer.end);
        }
    }
    EXPECT_EQ(targets, wanted);
    Index expected = 0;
    for (const auto& [rank, parts] : wanted)
        for (const auto& part : parts) expected += 2 * (std::ssize(part) - std::ranges::count(part, blank));
    EXPECT_EQ(moved, expected);  // so nothing is written twice
    for (auto& [rank, memory] : targets) {
        const auto made = PageTemplate::make(from_cache, to_cache, dims_of(source), rank, RowSide::receive).value();
        const std::span own = std::span(target_bases).subspan(static_cast<std::size_t>(rank) * count, count);
        const auto bound = made.bind(request, {own}, {source_bases, static_cast<Index>(count)}).value();
        for (const PeerRows& peer : bound.peers) {
            const AddressedRows& rows = sent[{peer.peer, rank}];
            EXPECT_TRUE(std::ranges::equal(std::span(bound.memory.local).subspan(peer.begin, peer.end - peer.begin),
                                           rows.remote));
            EXPECT_TRUE(std::ranges::equal(std::span(bound.memory.remote).subspan(peer.begin, peer.end - peer.begin),
                                           rows.local));
            sent.erase({peer.peer, rank});
        }
    }
    EXPECT_TRUE(sent.empty());
}

std::vector<Shape> all_shapes(Index heads) {
    std::vector<Shape> shapes;
    for (const Index tp : {1, 2, 4, 8})
        for (const Index dcp : {1, 2, 4})
            for (const Index block : {16, 32, 128})
                for (const bool hnd : {false, true})
                    if (tp * dcp <= 8) shapes.push_back({1, dcp, tp, 1, block, hnd, Layers::apart, heads, 0});
    return shapes;
}

// A long run takes all 5,832 pairs twice. A short run takes one of 40.
TEST(Pages, AllPairsOfCaches) {
    const std::uint64_t seed = drawn_seed();
    std::mt19937_64 random(seed);
    const auto any = [&](Index least, Index most) { return least + static_cast<Index>(random() % (most - least + 1)); };
    const Index step = long_run() ? 1 : 40;
    Index number = 0;
    for (Index round = 0; round < (long_run() ? 2 : 1); ++round)
        for (const Index heads : {8, 1})
            for (const Shape& from : all_shapes(heads))
                for (const Shape& to : all_shapes(heads)) {
                    if (number++ % step != 0) continue;
                    Shape source = from, target = to;
                    const auto layers_are = static_cast<Layers>(any(0, 2));
                    source.layers_are = target.layers_are = layers_are;
                    source.interleave = Index{1} << any(0, 5);
                    target.interleave = Index{1} << any(0, 5);
                    source.pp = source.ranks() <= 4 ? any(1, 2) : 1;
                    target.pp = target.ranks() <= 4 ? any(1, 2) : 1;
                    target.first_rank = any(0, 3) == 0 ? any(0, 7) : 8;
                    const Index end = any(1, 900);
                    expect_moved(source, target, {any(0, 1) * any(0, end - 1), end}, seed + number);
                    if (HasFailure()) FAIL() << "RESHARD_SEED=" << seed;
                }
}

}  // namespace
}  // namespace reshard::test
