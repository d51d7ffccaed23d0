// Page templates by example: counts of rows, pages that are not full, shared work, and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "reshard/model/pages.hpp"
#include "reshard/text.hpp"

namespace reshard::test {
namespace {

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

TEST(PageExamples, OneRowAPageIfThatSuffices) {
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

TEST(PageExamples, APageThatIsNotFullMovesItsTokens) {
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
TEST(PageExamples, ReplicasShareTheWork) {
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

TEST(PageExamples, TheHolderOfItsTokensCopiesThem) {
    const auto source = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,1,64]", 16);
    const auto target = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,1,64]", 32);
    for (const Index rank : {0, 1})
        EXPECT_EQ(bound_rows(source, target, rank, {0, 64}).peers, (std::vector<PeerRows>{{rank, 0, 4}}));
}

TEST(PageExamples, TwoCachesThatDoNotFitAreErrors) {
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

TEST(PageExamples, EmptyCachesMoveNothing) {
    const auto without_heads = bytes_cache(Mesh{{"tp", 2}}, "u8[4096,0@tp,8]", 16);
    EXPECT_TRUE(bound_rows(without_heads, without_heads, 0, {0, 100}).memory.local.empty());
    const auto without_tokens = bytes_cache(Mesh{{"tp", 2}}, "u8[0,2@tp,8]", 16);
    EXPECT_TRUE(bound_rows(without_tokens, without_tokens, 0, {0, 0}).memory.local.empty());
    const auto few_heads = bytes_cache(Mesh{{"tp", 4}}, "u8[4096,2@tp,8]", 16);  // ranks 2 and 3 have none
    EXPECT_TRUE(bound_rows(few_heads, few_heads, 3, {0, 100}).memory.local.empty());
    EXPECT_EQ(bound_rows(few_heads, few_heads, 1, {0, 100}).peers, (std::vector<PeerRows>{{1, 0, 7}}));
}

// Tokens in halves do not repeat, so the period is the longest request.
TEST(PageExamples, TokensInHalves) {
    const auto source = bytes_cache(Mesh{{"cp", 2}}, "u8[96@cp,8]", 16);
    const auto target = bytes_cache(Mesh{{{"cp", 1}}, {2}}, "u8[96,8]", 32);
    const PageRows rows = bound_rows(source, target, 1, {0, 60});
    // Tokens 48 to 59 are the first of rank 1. They are slots 16 to 27 of the second page, page 4.
    EXPECT_EQ(rows.memory.local, (std::vector<StridedMemory>{{1'000'000 + 3 * 128, 96, 0, 96, 1}}));
    EXPECT_EQ(rows.memory.remote, (std::vector<StridedMemory>{{1'000'000 + 4 * 256 + 128, 96, 0, 96, 1}}));
}

TEST(PageExamples, RequestsThatDoNotFitAreErrors) {
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
