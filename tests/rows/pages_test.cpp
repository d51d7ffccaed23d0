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

// One end whose pages are [tokens, heads, numbers] of bytes, at address 1,000,000 of every rank.
PagedCache bytes_cache(const Mesh& mesh, std::string_view layout, Index block, std::string_view storage = "") {
    PagedCache cache{parse_layout(mesh, layout).value(), block, 1000, {}, 0};
    cache.storages = parse_storages(page_layout(cache, {}), storage).value();
    return cache;
}

PageRows bound_rows(const PagedCache& source, const PagedCache& target, Index rank, const Interval& tokens) {
    std::vector<Index> table(200);
    std::iota(table.begin(), table.end(), Index{3});
    const std::vector<std::uint64_t> bases(16, 1'000'000);
    return PageTemplate::make(source, target, {}, rank)
        .value()
        .bind({table, table, tokens}, {std::span(bases).first(1)}, {bases, 1})
        .value();
}

TEST(Pages, OneRowAPageIfThatSuffices) {
    const Mesh two{{"tp", 2}}, four{std::vector<Axis>{{"tp", 4}}, {2, 3, 4, 5}};
    for (const char* storage : {"", "order 1,0,2"}) {
        const auto source = bytes_cache(two, "u8[4096,8@tp,64]", 16, storage);
        const auto target = bytes_cache(four, "u8[4096,8@tp,64]", 16, storage);
        const PageRows rows = bound_rows(source, target, 1, {0, 1600});
        EXPECT_EQ(rows.peers, (std::vector<PeerRows>{{4, 0, 100}, {5, 100, 200}})) << storage;
    }
    const auto hnd = bytes_cache(two, "u8[4096,8@tp,64]", 16, "order 1,0,2");
    const auto other = bytes_cache(four, "u8[4096,8@tp,64]", 16, "order 1,0,2");
    const PageRows rows = bound_rows(hnd, other, 1, {0, 16});
    // Two heads of 16 tokens of 64 bytes are one block. Page 3 is the first of the table.
    EXPECT_EQ(rows.memory.local[0], (StridedMemory{1'000'000 + 3 * 4096, 2048, 0, 2048, 1}));
    EXPECT_EQ(rows.memory.remote[0], (StridedMemory{1'000'000 + 3 * 2048, 2048, 0, 2048, 1}));
    EXPECT_EQ(rows.memory.local[1], (StridedMemory{1'000'000 + 3 * 4096 + 2048, 2048, 0, 2048, 1}));
}

TEST(Pages, APageThatIsNotFullMovesItsTokens) {
    const Mesh one{{"tp", 1}}, other{std::vector<Axis>{{"tp", 1}}, {1}};
    const auto source = bytes_cache(one, "u8[4096,2,8]", 16, "order 1,0,2");
    const auto target = bytes_cache(other, "u8[4096,2,8]", 32, "order 1,0,2");
    // Tokens 20 to 36: slots 4 to 15 of the second page, and 0 to 3 of the third.
    const PageRows rows = bound_rows(source, target, 0, {20, 36});
    EXPECT_EQ(rows.memory.local, (std::vector<StridedMemory>{{1'000'000 + 4 * 256 + 4 * 8, 96, 0, 128, 2},
                                                             {1'000'000 + 5 * 256, 32, 0, 128, 2}}));
    EXPECT_EQ(rows.memory.remote, (std::vector<StridedMemory>{{1'000'000 + 3 * 512 + 20 * 8, 96, 0, 256, 2},
                                                              {1'000'000 + 4 * 512, 32, 0, 256, 2}}));
    EXPECT_TRUE(bound_rows(source, target, 0, {20, 20}).memory.local.empty());
}

// MLA on 8 ranks and on fewer or more: every holder sends an even part.
TEST(Pages, ReplicasShareTheWork) {
    for (const Index takers : {1, 2, 3, 4, 8}) {
        const auto source = bytes_cache(Mesh{{"tp", 8}}, "u8[65536,1,64]", 16);
        std::vector<Index> devices(static_cast<std::size_t>(takers));
        std::iota(devices.begin(), devices.end(), Index{8});
        const auto target = bytes_cache(Mesh{{{"tp", takers}}, devices}, "u8[65536,1,64]", 16);
        Index least = index_max, most = 0, all = 0;
        for (Index rank = 0; rank < 8; ++rank) {
            const auto count = std::ssize(bound_rows(source, target, rank, {0, 96 * 16}).memory.local);
            least = std::min<Index>(least, count);
            most = std::max<Index>(most, count);
            all += count;
        }
        EXPECT_EQ(all, 96 * takers);
        // Three targets have 3, 3 and 2 holders.
        EXPECT_EQ(most, takers == 3 ? 48 : 12 * takers) << takers;
        EXPECT_EQ(least, takers == 3 ? 32 : 12 * takers) << takers;
    }
}

TEST(Pages, TheHolderOfItsTokensCopiesThem) {
    const auto source = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,1,64]", 16);
    const auto target = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,1,64]", 32);
    for (const Index rank : {0, 1})
        EXPECT_EQ(bound_rows(source, target, rank, {0, 64}).peers, (std::vector<PeerRows>{{rank, 0, 4}}));
}

TEST(Pages, TwoCachesThatDoNotFitAreErrors) {
    const Mesh mesh{{"tp", 2}};
    const auto good = bytes_cache(mesh, "u8[4096,2@tp,8]", 16);
    const auto why = [&](const PagedCache& source, const PageDims& dims = {}, Index rank = 0) {
        const auto made = PageTemplate::make(source, good, dims, rank);
        return made ? "" : made.error().message;
    };
    EXPECT_EQ(why(good), "");
    EXPECT_EQ(why(good, {3, {}}), "tokens are dimension 3; the cache has 3 dimensions");
    EXPECT_EQ(why(good, {0, 0}), "tokens are dimension 0 and layers dimension 0; the cache has 3 dimensions");
    EXPECT_EQ(why(good, {}, -1), "there is no rank -1");
    PagedCache bad = good;
    bad.block = 0;
    EXPECT_EQ(why(bad),
              "the source has 1000 pages of 0 tokens, 0 elements apart; pages and tokens are at least 1, the distance "
              "at least 0");
    bad = good;
    bad.storages = {row_major(tile(good.layout, 0))};
    EXPECT_EQ(why(bad), "storages of 1 ranks for the source of 2");
    bad.storages = {{0, {1}}, {0, {1}}};
    EXPECT_NE(why(bad).find("the source of rank 0: "), std::string::npos);
    bad = good;
    bad.pages = index_max / 4;
    EXPECT_EQ(why(bad), "the source of rank 0: the pages reach past 64 bits");
    EXPECT_NE(why(bytes_cache(mesh, "u8[4096,4@tp,8]", 16)), "");
    const auto long_one = bytes_cache(mesh, "u8[1099511627776@tp]", 16);
    EXPECT_EQ(PageTemplate::make(long_one, long_one, {}, 0).error().message,
              "the pages of the source repeat after 1099511627776 tokens, which are 68719476736 pages; at most 4194304 "
              "are supported");
    EXPECT_NE(why(bytes_cache(mesh, "i8[4096,2@tp,8]", 16)), "");
}

TEST(Pages, EmptyCachesMoveNothing) {
    const auto without_heads = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,0@tp,8]", 16);
    EXPECT_TRUE(bound_rows(without_heads, without_heads, 0, {0, 100}).memory.local.empty());
    const auto without_tokens = bytes_cache(Mesh{{"tp", 2}}, "u8[0,2@tp,8]", 16);
    EXPECT_TRUE(bound_rows(without_tokens, without_tokens, 0, {0, 0}).memory.local.empty());
    const auto few_heads = bytes_cache(Mesh{{"tp", 4}}, "u8[4096,2@tp,8]", 16);  // ranks 2 and 3 have none
    EXPECT_TRUE(bound_rows(few_heads, few_heads, 3, {0, 100}).memory.local.empty());
    EXPECT_EQ(bound_rows(few_heads, few_heads, 1, {0, 100}).peers, (std::vector<PeerRows>{{1, 0, 7}}));
}

// Tokens in halves do not repeat, so the period is the longest request.
TEST(Pages, TokensInHalves) {
    const auto source = bytes_cache(Mesh{{"cp", 2}}, "u8[96@cp,8]", 16);
    const auto target = bytes_cache(Mesh{{{"cp", 1}}, {2}}, "u8[96,8]", 32);
    const PageRows rows = bound_rows(source, target, 1, {0, 60});
    // Tokens 48 to 59 are the first of rank 1. They are slots 16 to 27 of the second page, page 4.
    EXPECT_EQ(rows.memory.local, (std::vector<StridedMemory>{{1'000'000 + 3 * 128, 96, 0, 96, 1}}));
    EXPECT_EQ(rows.memory.remote, (std::vector<StridedMemory>{{1'000'000 + 4 * 256 + 128, 96, 0, 96, 1}}));
}

TEST(Pages, RequestsThatDoNotFitAreErrors) {
    const auto source = bytes_cache(Mesh{{"tp", 1}}, "u8[4096,1,8]", 16);
    const auto target = bytes_cache(Mesh{{{"tp", 1}}, {1}}, "u8[4096,1,8]", 32);
    const PageTemplate made = PageTemplate::make(source, target, {}, 0).value();
    EXPECT_EQ(made.period(), 32);
    std::vector<Index> from = {0, 1, 2, 999}, to = {7, 999};
    const std::vector<std::uint64_t> bases = {1'000'000, 2'000'000};
    const auto why = [&](const Interval& tokens, std::span<const std::uint64_t> own, Index ranks = 2) {
        PageRows rows;
        rows.peers.push_back({});
        const auto bound = made.bind({from, to, tokens}, {own}, {std::span(bases).first(ranks), 1}, rows);
        EXPECT_EQ(rows.peers.empty(), !bound);
        return bound ? "" : bound.error().message;
    };
    const auto own = std::span(bases).first(1);
    EXPECT_EQ(why({0, 64}, own), "");
    EXPECT_EQ(why({0, 65}, own), "the table of the source has 4 pages; tokens 0:65 need 5");
    EXPECT_EQ(why({0, 4097}, own), "tokens 0:4097; the cache has 0:4096");
    EXPECT_EQ(why({9, 8}, own), "tokens 9:8; the cache has 0:4096");
    EXPECT_EQ(why({0, 64}, {}), "a row of array 0; there are own addresses of 0");
    EXPECT_EQ(why({0, 64}, own, 1), "a row of array 0 and peer 1; there are addresses of 1 arrays and 1 ranks");
    const std::vector<std::uint64_t> far = {UINT64_MAX - 100};
    EXPECT_EQ(why({0, 64}, far), "the pages from 0xffffffffffffff9b or 0x1e8480 on reach past 64 bits");
    from[2] = 1000;
    EXPECT_EQ(why({0, 64}, own), "entry 2 of the table of the source is page 1000; the cache has pages 0 to 999");
    EXPECT_EQ(why({0, 32}, own), "");  // entry 2 is not needed
    from[2] = -1;
    EXPECT_EQ(why({0, 64}, own), "entry 2 of the table of the source is page -1; the cache has pages 0 to 999");
    from[2] = 1;  // the same page twice is read twice
    EXPECT_EQ(why({0, 64}, own), "");
    to[1] = 7;
    EXPECT_EQ(why({0, 64}, own), "page 7 is twice in the table of the target, as entries 0 and 1");
    EXPECT_EQ(why({32, 64}, own), "");
}

}  // namespace
}  // namespace reshard::test
