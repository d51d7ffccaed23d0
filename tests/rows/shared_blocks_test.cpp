// Scales of blocks that several ranks share. Carries out the rows and compares each tile with the blocks that a rank's
// columns touch, computed here without layouts.
#include <random>

#include <gtest/gtest.h>

#include "rows/model_moves.hpp"

namespace reshard::test {
namespace {

constexpr Index rows = 3;

// A block of the scales of a part.
struct Block {
    std::size_t part = 0;
    Index number = 0;
    friend bool operator==(const Block&, const Block&) = default;
};

// A matrix of one part or two, cut by columns.
struct Matrix {
    std::vector<Index> parts;  // columns of each
    Index block = 1;           // columns of a block
    bool balanced = false;
    bool cut_whole = false;  // ++

    [[nodiscard]] Index blocks(std::size_t part) const { return (parts[part] + block - 1) / block; }

    [[nodiscard]] Index begin(Index columns, Index shard, Index shards) const {
        if (balanced) return columns / shards * shard + std::min(columns % shards, shard);
        return std::min(columns, (columns + shards - 1) / shards * shard);
    }

    // The blocks that a shard holds, in its order.
    [[nodiscard]] std::vector<Block> held(Index shard, Index shards) const {
        std::vector<Block> all;
        Index total = 0;
        for (const Index part : parts) total += part;
        Index before = 0;
        for (std::size_t i = 0; i < parts.size(); before += parts[i++]) {
            const Index offset = cut_whole ? before : 0;
            const Index columns = cut_whole ? total : parts[i];
            const Index from = std::clamp<Index>(begin(columns, shard, shards) - offset, 0, parts[i]);
            const Index to = std::clamp<Index>(begin(columns, shard + 1, shards) - offset, 0, parts[i]);
            for (Index column = from; column < to; ++column)
                if (all.empty() || all.back() != Block{i, column / block}) all.push_back({i, column / block});
        }
        return all;
    }

    // The lines of an end for a matrix of one part.
    [[nodiscard]] std::string lines() const {
        return fmt::format("w = [-, tp{}]\nws = blocks 1,{} of w\n", balanced ? "[balanced]" : "", block);
    }
};

std::vector<std::byte> tile_of(const Matrix& matrix, const std::vector<Block>& blocks,
                               const std::vector<std::string>& names) {
    std::vector<std::byte> bytes;
    for (Index row = 0; row < rows; ++row)
        for (const auto& [part, number] : blocks)
            for (Index byte = 0; byte < 2; ++byte)
                bytes.push_back(value_in(names[part], row * matrix.blocks(part) + number, byte));
    return bytes;
}

// The list of a matrix of one part and its scales.
std::string list_of(const Matrix& matrix) {
    return fmt::format("w u8[{0},{1}]\nws u16[{0},{2}]\n", rows, matrix.parts[0], matrix.blocks(0));
}

// The scales' element for its number in the layout of a source, which has the blocks of the shards in their order.
Numbers numbers_of(const Matrix& matrix, Index shards) {
    std::vector<Block> all;
    for (Index shard = 0; shard < shards; ++shard)
        for (const Block& block : matrix.held(shard, shards)) all.push_back(block);
    return [=](const ShardedTensor& tensor, Index number) {
        if (tensor.name != "ws") return number;
        const Index columns = std::ssize(all);
        return number / columns * matrix.blocks(0) + all[static_cast<std::size_t>(number % columns)].number;
    };
}

class SharedBlocks : public testing::Test {
protected:
    Index drawn(Index from, Index to) { return std::uniform_int_distribution<Index>(from, to)(random_); }
    bool tossed() { return drawn(0, 1) == 1; }
    std::mt19937_64 random_{40};
};

TEST_F(SharedBlocks, AreOnEachRankThatHasTheirColumns) {
    int shared = 0;
    for (int round = 0; round < 200; ++round) {
        Matrix matrix{{drawn(1, 40)}, drawn(1, 9), tossed(), tossed()};
        if (tossed()) matrix.parts.push_back(drawn(1, 40));
        const Index shards = drawn(1, 6);
        std::string list;
        std::vector<std::string> scales;
        for (std::size_t i = 0; i < matrix.parts.size(); ++i) {
            scales.push_back(fmt::format("s{}", i));
            list += fmt::format("w{1} u8[{0},{2}]\ns{1} u16[{0},{3}]\n", rows, i, matrix.parts[i], matrix.blocks(i));
        }
        const char* const plus = matrix.cut_whole ? "++" : "+";
        const bool two = matrix.parts.size() == 2;
        const std::string rules =
            fmt::format("source s=2\n* = [s, -]\ntarget tp={}\nw = [-, tp{}] <- w0{}\nws = blocks 1,{} of w <- s0{}\n",
                        shards, matrix.balanced ? "[balanced]" : "", two ? fmt::format(" {} w1 along 1", plus) : "",
                        matrix.block, two ? fmt::format(" {} s1 along 1", plus) : "");
        SCOPED_TRACE(list + rules);
        const MovedModel moved = moved_model(list, rules, std::max<Index>(shards, 2));
        EXPECT_EQ(moved.fault, "");
        Index columns = 0;
        for (Index shard = 0; shard < shards; ++shard) {
            const std::vector<Block> held = matrix.held(shard, shards);
            columns += std::ssize(held);
            EXPECT_EQ(moved.targets[1][static_cast<std::size_t>(shard)], tile_of(matrix, held, scales)) << shard;
        }
        EXPECT_EQ(moved.model.targets[1].shape, (std::vector<Index>{rows, columns}));
        shared += columns > matrix.blocks(0) + (two ? matrix.blocks(1) : 0) ? 1 : 0;
    }
    EXPECT_GT(shared, 100);
}

TEST_F(SharedBlocks, AreGivenByOneRank) {
    for (int round = 0; round < 200; ++round) {
        const Matrix matrix{{drawn(1, 60)}, drawn(1, 9), tossed()};
        Matrix other = matrix;
        other.balanced = tossed();
        const Index shards = drawn(2, 6);
        const Index others = drawn(1, 6);
        const Index from = drawn(0, matrix.blocks(0) - 1);
        const std::string rules =
            fmt::format("source tp={}\n{}target tp={}\n{}also whole = [tp, -] <- ws\nalso part = - <- ws[1, {}:]\n",
                        shards, matrix.lines(), others, other.lines(), from);
        SCOPED_TRACE(list_of(matrix) + rules);
        const MovedModel moved =
            moved_model(list_of(matrix), rules, std::max(shards, others), numbers_of(matrix, shards));
        EXPECT_EQ(moved.fault, "");
        for (Index shard = 0; shard < others; ++shard)
            EXPECT_EQ(moved.targets[1][static_cast<std::size_t>(shard)],
                      tile_of(other, other.held(shard, others), {"ws"}));
        expect_elements(moved, 2, [&](const Place& at) { return Element{"ws", at[0] * matrix.blocks(0) + at[1]}; });
        expect_elements(moved, 3, [&](const Place& at) { return Element{"ws", matrix.blocks(0) + from + at[0]}; });
    }
}

TEST_F(SharedBlocks, AreHeldByTheOwnersOfAStackOnly) {
    // Two experts on two halves of the ranks, each cut by three: 192 columns a rank, blocks of 128.
    const MovedModel moved = moved_model("e.{e:2}.down u8[2,576]\ne.{e:2}.scale u16[2,5]\n",
                                         "source s=1\n* = -\ntarget ep=2,tp=3\n"
                                         "down = [ep, -, tp] <- e.{e:2}.down\n"
                                         "scale = blocks 1,1,128 of down <- e.{e:2}.scale\n",
                                         6);
    EXPECT_EQ(moved.fault, "");
    const std::vector<Index> blocks[] = {{0, 1}, {1, 2}, {3, 4}};
    for (std::size_t rank = 0; rank < 6; ++rank) {
        std::vector<std::byte> wanted;
        for (Index row = 0; row < 2; ++row)
            for (const Index block : blocks[rank % 3])
                for (Index byte = 0; byte < 2; ++byte)
                    wanted.push_back(value_in(fmt::format("e.{}.scale", rank / 3), row * 5 + block, byte));
        EXPECT_EQ(moved.targets[1][rank], wanted) << rank;
    }
}

TEST(SharedBlocksMistakes, NameTheCutOrTheTensor) {
    const auto fault = [](const std::string& list, const std::string& rules) {
        const auto made = apply_rules(rules, parse_tensors(list).value());
        return made ? std::string() : made.error().message;
    };
    const std::string list = "w u8[12]\ns u8[3]\n";
    EXPECT_TRUE(fault(list, "source tp=2\nw = [tp/1]\ns = blocks 4 of w\ntarget x=1\n* = -\n")
                    .starts_with("line 3 of the rules: dimension 0, u8[12@tp/1], is cut at 2, within a block of 4 that "
                                 "one shard would hold twice ('s')"));
    EXPECT_TRUE(fault(list, "source tp=4\nw = [tp]\ns = blocks 4 of w\ntarget x=1\na = - <- s shape(3,1)\nw = -\n")
                    .starts_with("line 5 of the rules: 's' has blocks that ranks share, and is not seen in another "
                                 "shape ('a')"));
    EXPECT_TRUE(fault("w u8[12]\ns u8[6]\n", "source tp=4\nw = [tp]\ns = blocks 4 of w\ntarget x=1\n* = -\n")
                    .starts_with("line 3 of the rules: not as many blocks as the tensor has ('s')"));
}

}  // namespace
}  // namespace reshard::test
