// Heads that are never cut, and tensors with owners. Carries out the rows and compares each tile with rows of the
// listed tensors that are computed here, without layouts.
#include <gtest/gtest.h>

#include "rows/model_moves.hpp"

namespace reshard::test {
namespace {

// Rows [begin, end) of a listed tensor.
struct Rows {
    std::string tensor;
    Index begin = 0;
    Index end = 0;
};

std::vector<std::byte> bytes_of(const std::vector<Rows>& tile, Index columns, Index element_bytes) {
    std::vector<std::byte> bytes;
    for (const Rows& rows : tile)
        for (Index element = rows.begin * columns; element < rows.end * columns; ++element)
            for (Index byte = 0; byte < element_bytes; ++byte) bytes.push_back(value_in(rows.tensor, element, byte));
    return bytes;
}

// The rows of whole heads that shard `shard` of `shards` has.
Rows heads_of(const std::string& tensor, Index heads, Index rows, Index shard, Index shards) {
    if (heads < shards) {
        const Index head = shard / (shards / heads);
        return {tensor, head * rows, (head + 1) * rows};
    }
    const Index own = heads / shards;
    return {tensor, shard * own * rows, (shard + 1) * own * rows};
}

struct Attention {
    Index queries;  // heads
    Index keys;
    Index shards;
};
constexpr Attention attentions[] = {{16, 4, 8}, {16, 4, 4}, {16, 4, 2}, {8, 2, 8}, {8, 1, 8}, {6, 2, 6}, {2, 1, 4}};

constexpr Index head_rows = 8;
constexpr Index columns = 3;

TEST(Heads, OfAFusedTensorAreWholeOnTheRightRanks) {
    for (const auto& [queries, keys, shards] : attentions) {
        SCOPED_TRACE(fmt::format("{} query heads, {} kv heads, {} shards", queries, keys, shards));
        const std::string list = fmt::format("l.0.q bf16[{},3]\nl.0.k bf16[{},3]\nl.0.v bf16[{},3]\n",
                                             queries * head_rows, keys * head_rows, keys * head_rows);
        const std::string rules = fmt::format(
            "source s=2\notherwise = [s, -]\ntarget tp={}\n"
            "l.{{n}}.qkv = [tp heads of 8, -] <- l.{{n}}.q + l.{{n}}.k + l.{{n}}.v\n",
            shards);
        const Index ranks = std::max<Index>(shards, 2);
        const MovedModel moved = moved_model(list, rules, ranks);
        EXPECT_EQ(moved.fault, "");
        for (Index rank = 0; rank < shards; ++rank)
            EXPECT_EQ(moved.targets[0][static_cast<std::size_t>(rank)],
                      bytes_of({heads_of("l.0.q", queries, head_rows, rank, shards),
                                heads_of("l.0.k", keys, head_rows, rank, shards),
                                heads_of("l.0.v", keys, head_rows, rank, shards)},
                               columns, 2))
                << rank;
    }
}

TEST(Heads, OfSeveralAxesFollowTheOrderOfTheAxes) {
    // Device 4a + b is shard 2b + a of (b,a). Layers and experts are stacked, and each is cut alone.
    const MovedModel moved = moved_model("e.{e:2}.q u16[64,3]\ne.{e:2}.k u16[16,3]\n",
                                         "source s=4\notherwise = [-, -]\ntarget a=2,b=4\n"
                                         "qk = [-, (b,a) heads of 8, -] <- e.{e:2}.q + e.{e:2}.k\n",
                                         8);
    EXPECT_EQ(moved.fault, "");
    EXPECT_EQ(moved.model.targets[0].shape, (std::vector<Index>{2, 128, 3}));
    for (Index a = 0; a < 2; ++a)
        for (Index b = 0; b < 4; ++b) {
            std::vector<Rows> tile;
            for (const char* const expert : {"e.0.", "e.1."}) {
                tile.push_back(heads_of(std::string(expert) + "q", 8, 8, 2 * b + a, 8));
                tile.push_back(heads_of(std::string(expert) + "k", 2, 8, 2 * b + a, 8));
            }
            EXPECT_EQ(moved.targets[0][static_cast<std::size_t>(4 * a + b)], bytes_of(tile, 3, 2)) << a << b;
        }
}

TEST(Heads, OfATensorAloneAreReplicatedAtBothEnds) {
    const MovedModel moved = moved_model("k u16[32,3]\n",
                                         "source tp=8\nk = [tp heads of 8, -]\ntarget tp=2[8,9]\n"
                                         "k = [tp heads of 8, -]\n",
                                         10);
    EXPECT_EQ(moved.fault, "");
    EXPECT_EQ(tile_count(*moved.model.sources[0].layout, 3), 24U);
    for (Index rank = 0; rank < 2; ++rank)
        EXPECT_EQ(moved.targets[0][static_cast<std::size_t>(8 + rank)], bytes_of({heads_of("k", 4, 8, rank, 2)}, 3, 2));
}

TEST(Heads, MayHaveOneSizeForEachPart) {
    // A part of one head is on every rank. Four ranks share the two heads of the second part.
    const MovedModel moved =
        moved_model("all u16[30,3]\n",
                    "source s=2\nall = [s, -]\ntarget tp=4\n"
                    "mixed = [tp heads of {4,5,3,1}, -] <- all[0:4, :] + all[4:14, :] + all[14:26, "
                    ":] + all[26:30, :]\n",
                    4);
    EXPECT_EQ(moved.fault, "");
    for (Index rank = 0; rank < 4; ++rank) {
        const std::vector<Rows> tile = {{"all", 0, 4},
                                        {"all", 4 + rank / 2 * 5, 9 + rank / 2 * 5},
                                        {"all", 14 + 3 * rank, 17 + 3 * rank},
                                        {"all", 26 + rank, 27 + rank}};
        EXPECT_EQ(moved.targets[0][static_cast<std::size_t>(rank)], bytes_of(tile, 3, 2)) << rank;
    }
}

TEST(Heads, AreTakenBackFromOneOfTheirCopies) {
    const MovedModel moved = moved_model("qk u16[48,3]\n",
                                         "source tp=4\nqk = [tp{16,32} heads of 4, -]\ntarget s=2[4,5]\n"
                                         "q = [s, -] <- qk[0:16, :]\n"
                                         "k = [s, -] <- qk[16:20, :] ++ qk[24:28, :] ++ qk[32:36, :] ++ qk[40:44, :]\n",
                                         6);
    EXPECT_EQ(moved.fault, "");
    for (Index rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(moved.targets[0][static_cast<std::size_t>(4 + rank)],
                  bytes_of({{"qk", 8 * rank, 8 * rank + 8}}, 3, 2));
        const Index first = 16 + 16 * rank;
        EXPECT_EQ(moved.targets[1][static_cast<std::size_t>(4 + rank)],
                  bytes_of({{"qk", first, first + 4}, {"qk", first + 8, first + 12}}, 3, 2));
    }
}

TEST(Heads, AreRepeatedInScalesToo) {
    const MovedModel moved = moved_model("q u8[64,4]\nk u8[16,4]\nqs f32[16,2]\nks f32[4,2]\n",
                                         "source s=2\notherwise = -\ntarget tp=8\n"
                                         "qk = [tp heads of 8, -] <- q + k\n"
                                         "qk_scale = blocks 4,2 of qk <- qs + ks\n",
                                         8);
    EXPECT_EQ(moved.fault, "");
    ASSERT_EQ(moved.model.targets[1].name, "qk_scale");
    for (Index rank = 0; rank < 8; ++rank)
        EXPECT_EQ(moved.targets[1][static_cast<std::size_t>(rank)],
                  bytes_of({heads_of("qs", 8, 2, rank, 8), heads_of("ks", 2, 2, rank, 8)}, 2, 4));
}

TEST(Heads, OfASliceAreTakenFromTheSlice) {
    const MovedModel moved = moved_model("all u8[2,80,3]\n",
                                         "source s=2\nall = [-, s, -]\ntarget tp=8\n"
                                         "q.{n:2} = [tp heads of 8, -] <- all[{n}, 0:64, :] + all[{n}, 64:80, :]\n",
                                         8);
    EXPECT_EQ(moved.fault, "");
    for (Index layer = 0; layer < 2; ++layer)
        for (Index rank = 0; rank < 8; ++rank) {
            const Index key = layer * 80 + 64 + rank / 4 * 8;
            const std::vector<Rows> tile = {{"all", layer * 80 + rank * 8, layer * 80 + rank * 8 + 8},
                                            {"all", key, key + 8}};
            EXPECT_EQ(moved.targets[static_cast<std::size_t>(layer)][static_cast<std::size_t>(rank)],
                      bytes_of(tile, 3, 1));
        }
}

TEST(Owners, HoldTheLayersThatTheCutGivesThem) {
    const MovedModel moved = moved_model("embed f32[64,16]\nlayers.{n:30}.w f32[4,4]\nlm_head f32[64,16]\n",
                                         "source s=1\notherwise = -\ntarget pp=4\n"
                                         "embed = [first@pp, -, -]\n"
                                         "layers.{n:30}.w = [{n}@pp[8,8,7,7], -, -]\n"
                                         "lm_head = [last@pp, -, -]\n",
                                         4);
    EXPECT_EQ(moved.fault, "");
    const Index begins[] = {0, 8, 16, 23, 30};
    for (std::size_t i = 0; i < moved.targets.size(); ++i) {
        const ShardedTensor& tensor = moved.model.targets[i];
        for (std::size_t stage = 0; stage < 4; ++stage) {
            bool owns = tensor.name == "embed" ? stage == 0 : stage == 3;
            if (tensor.name.starts_with("layers.")) {
                const Index layer = std::stoll(tensor.name.substr(7));
                owns = begins[stage] <= layer && layer < begins[stage + 1];
            }
            const Index rows = tensor.name.starts_with("layers.") ? 4 : 64;
            const auto wanted = bytes_of({{tensor.name, 0, owns ? rows : 0}}, rows == 4 ? 4 : 16, 4);
            EXPECT_EQ(moved.targets[i][stage], wanted) << tensor.name << " on " << stage;
        }
    }
}

// The rank that owns each of `count` tensors.
std::string owners(const std::string& entry, Index count) {
    const MovedModel moved = moved_model(fmt::format("w.{{n:{}}} u8[2]\n", count),
                                         fmt::format("source s=1\notherwise = -\ntarget a=2,b=2\n"
                                                     "w.{{n:{}}} = [{}, -]\n",
                                                     count, entry),
                                         4);
    EXPECT_EQ(moved.fault, "");
    std::string text;
    for (const Memory& target : moved.targets)
        for (std::size_t rank = 0; rank < target.size(); ++rank)
            if (!target[rank].empty()) text += fmt::format("{}", rank);
    return text;
}

TEST(Owners, FollowTheNotationOfCuts) {
    EXPECT_EQ(owners("{n}@(a,b)", 6), "001122");
    EXPECT_EQ(owners("{n}@(a,b)/1", 6), "012301");
    EXPECT_EQ(owners("{n}@(b,a)/1", 6), "021302");
    EXPECT_EQ(owners("{n}@(a,b)/2", 12), "001122330011");  // two virtual stages
    EXPECT_EQ(owners("{n}@(a,b)[1,0,3,2]", 6), "022233");
    EXPECT_EQ(owners("{n}@(a,b)[2:3,3:0,5:3,6:1]", 6), "330331");
    EXPECT_EQ(owners("2@(a,b)", 2), "22");
    EXPECT_EQ(owners("first@(a,b)", 2), "00");
    EXPECT_EQ(owners("last@(a,b)", 2), "33");
    EXPECT_EQ(owners("last@a", 2), "2323");  // replicated over b
}

TEST(Owners, OfNumbersThatBeginLaterAreTheOwnersOfAllNumbers) {
    for (const char* const entry : {"{n}@a", "{n}@a[7,5]", "{n}@a/1", "{n}@a[balanced]"}) {
        SCOPED_TRACE(entry);
        const auto owners_of = [&](const std::string& lines) {
            const MovedModel moved =
                moved_model("w.{n:12} u8[2]\n", "source s=1\notherwise = -\ntarget a=2\n" + lines, 2);
            EXPECT_EQ(moved.fault, "");
            std::string text;
            for (const Memory& target : moved.targets) text += target[0].empty() ? "1" : "0";
            return text;
        };
        EXPECT_EQ(owners_of(fmt::format("w.{{n:5:12}} = [{}, -]\nw.{{n:5}} = [first@a, -]\n", entry)).substr(5),
                  owners_of(fmt::format("w.{{n:12}} = [{}, -]\n", entry)).substr(5));
    }
}

}  // namespace
}  // namespace reshard::test
