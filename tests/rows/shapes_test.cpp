// Parts in another shape, and cuts between blocks. Carries out the rows and compares each element with the element of
// the list that is computed here, without layouts.
#include <array>
#include <random>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "rows/model_moves.hpp"

namespace reshard::test {
namespace {

TEST(Shapes, KeepTheOrderOfTheElements) {
    // 24 x 12 elements as 4 x 6 x 2 x 6: both dimensions are split.
    for (const char* const cut :
         {"[s, -]", "[-, s]", "[s, t]", "[(s,t), -]", "[-, (t,s)]", "[s[6,18], -]", "[-, t[6,6]]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved = moved_model("w u16[24,12]\n",
                                             fmt::format("source s=2,t=2\n* = {}\ntarget tp=3\n"
                                                         "a = [-, tp, -] <- w shape(4,6,2,6)[:, :, 1, :]\n"
                                                         "b = [-, -, tp] <- w shape(4,6,2,6)[:, :, 0, :]\n",
                                                         cut),
                                             4);
        EXPECT_EQ(moved.model.moves.size(), 2U);
        for (std::size_t part = 0; part < 2; ++part)
            expect_elements(moved, part, [&](const Place& at) {
                return Element{"w", (at[0] * 6 + at[1]) * 12 + (part == 0 ? 6 : 0) + at[2]};
            });
    }
}

TEST(Shapes, MergeDimensionsThatAreCut) {
    for (const char* const cut : {"[s, -]", "[-, t]", "[s, t]", "[s[4,2], -]", "[-, (s,t)]", "[s[2,4], t[5,3]]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved =
            moved_model("w u16[6,8]\n",
                        fmt::format("source s=2,t=2\n* = {}\ntarget tp=4\na = [tp] <- w shape(48)[1::2]\n", cut), 4);
        expect_elements(moved, 0, [](const Place& at) { return Element{"w", 2 * at[0] + 1}; });
    }
}

TEST(Shapes, SplitAndMergeAtOnce) {
    for (const char* const cut : {"[s, -]", "[-, t]", "[s, t]", "[-, (s,t)]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved = moved_model(
            "w u16[6,8]\n", fmt::format("source s=2,t=2\n* = {}\ntarget tp=4\na = [-, tp] <- w shape(2,-1)\n", cut), 4);
        expect_elements(moved, 0, [](const Place& at) { return Element{"w", at[0] * 24 + at[1]}; });
    }
}

TEST(Shapes, AreOrderedAfterwards) {
    // Experts side by side in one matrix, as [hidden, experts * columns], which memory holds as experts x hidden x
    // columns.
    const MovedModel moved = moved_model("w1 u16[6,40]\n",
                                         "source s=2\n* = -\ntarget tp=4\n"
                                         "e.{e:4}.gate = [tp, -] <- w1 shape(4,6,10)[{e}, :, 0:4].T\n"
                                         "e.{e:4}.up = [tp, -] <- w1 shape(4,6,10)[{e}, :, 4:10].T\n",
                                         4);
    ASSERT_EQ(moved.model.targets.size(), 8U);
    for (std::size_t target = 0; target < 8; ++target) {
        const std::string& name = moved.model.targets[target].name;
        const Index expert = name[2] - '0';
        const Index first = name.ends_with("gate") ? 0 : 4;
        expect_elements(moved, target, [&](const Place& at) {
            return Element{"w1", (expert * 6 + at[1]) * 10 + first + at[0]};
        });
    }
}

TEST(Shapes, GivePartsOfAStackADimension) {
    // Gate and up of all experts become one tensor, 2 x 2 x 4 x 3.
    const MovedModel moved =
        moved_model("e.{e:2}.gate u16[4,3]\ne.{e:2}.up u16[4,3]\n",
                    "source s=2\n* = [s, -]\ntarget tp=2\n"
                    "w13 = [-, -, tp, -] <- e.{e:2}.gate shape(1,4,3) ++ e.{e:2}.up shape(1,4,3)\n",
                    2);
    EXPECT_EQ(moved.model.targets[0].shape, (std::vector<Index>{2, 2, 4, 3}));
    expect_elements(moved, 0, [](const Place& at) {
        return Element{fmt::format("e.{}.{}", at[0], at[1] == 0 ? "gate" : "up"), at[2] * 3 + at[3]};
    });
}

TEST(Shapes, MayDifferIfNoElementIsTakenTwice) {
    // The first halves of 24 rows as 4 x 6 x 1 x 6, and the second halves by columns.
    for (const char* const cut : {"[s, -]", "[-, s]", "[s, t]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved = moved_model("w u16[24,12]\n",
                                             fmt::format("source s=2,t=2\n* = {}\ntarget tp=3\n"
                                                         "a = [-, tp, -] <- w shape(4,6,2,6)[:, :, 0, :]\n"
                                                         "b = [tp, -] <- w[:, 6:12]\n",
                                                         cut),
                                             4);
        expect_elements(moved, 0, [](const Place& at) { return Element{"w", (at[0] * 6 + at[1]) * 12 + at[2]}; });
        expect_elements(moved, 1, [](const Place& at) { return Element{"w", at[0] * 12 + 6 + at[1]}; });
    }
}

// The numbers of the elements of a part, by a loop over all of them.
std::set<Index> elements_of(std::span<const Index> shape, std::span<const std::array<Index, 3>> slices) {
    Index count = 1;
    for (const Index extent : shape) count *= extent;
    std::set<Index> all;
    for (Index number = 0; number < count; ++number) {
        const Place at = place_of(number, shape);
        bool taken = true;
        for (std::size_t k = 0; k < at.size(); ++k) {
            const auto [from, to, step] = slices[k];
            taken = taken && from <= at[k] && at[k] < to && (at[k] - from) % step == 0;
        }
        if (taken) all.insert(number);
    }
    return all;
}

TEST(Shapes, ThatShareAnElementAreFound) {
    const std::vector<std::vector<Index>> shapes = {{24, 12}, {288}, {4, 6, 12}, {24, 2, 6}, {6, 48}, {2, 3, 4, 3, 4}};
    std::mt19937_64 random(3);
    const auto below = [&](Index end) { return static_cast<Index>(random() % static_cast<std::uint64_t>(end)); };
    int shared = 0;
    for (int round = 0; round < 400; ++round) {
        std::string lines;
        std::array<std::set<Index>, 2> taken;
        for (std::size_t part = 0; part < 2; ++part) {
            const auto& shape = shapes[(static_cast<std::size_t>(round) + part * (1 + round % 5)) % shapes.size()];
            std::vector<std::array<Index, 3>> slices;
            std::vector<std::string> texts;
            for (const Index extent : shape) {
                const Index from = below(2) == 0 ? 0 : below(extent);
                const Index to = below(2) == 0 ? extent : from + 1 + below(extent - from);
                slices.push_back({from, to, 1 + below(2) * below(3)});
                texts.push_back(fmt::format("{}:{}:{}", from, to, slices.back()[2]));
            }
            taken[part] = elements_of(shape, slices);
            lines += fmt::format("{} = - <- w shape({})[{}]\n", part == 0 ? "a" : "b", fmt::join(shape, ","),
                                 fmt::join(texts, ","));
        }
        std::vector<Index> both;
        std::ranges::set_intersection(taken[0], taken[1], std::back_inserter(both));
        const auto model = apply_rules("source s=1\n* = -\ntarget s=1\n" + lines, *parse_tensors("w u8[24,12]\n"));
        EXPECT_EQ(model.has_value(), both.empty()) << lines;
        if (!model) {
            EXPECT_NE(model.error().message.find("is taken on line 4"), std::string::npos) << lines;
        }
        shared += both.empty() ? 0 : 1;
    }
    EXPECT_GT(shared, 100);
    EXPECT_LT(shared, 380);
}

TEST(Blocks, AreWholeOnARank) {
    // 5 blocks of 4 for 4 ranks: 2, 2, 1 and none. The scales have an element for each block.
    const MovedModel moved = moved_model("w u8[3,5,4]\ns u8[3,5]\n",
                                         "source x=2\nw = [-, -, x]\ns = -\ntarget tp=4\n"
                                         "w = [-, tp blocks of 4] <- w shape(:,-1)\ns = blocks 1,4 of w\n",
                                         4);
    expect_elements(moved, 0, [](const Place& at) { return Element{"w", at[0] * 20 + at[1]}; });
    expect_elements(moved, 1, [](const Place& at) { return Element{"s", at[0] * 5 + at[1]}; });
    std::vector<Index> columns;
    for (Index rank = 0; rank < 4; ++rank) columns.push_back(tile(*moved.model.targets[0].layout, rank)[1].size());
    EXPECT_EQ(columns, (std::vector<Index>{8, 8, 4, 0}));
}

}  // namespace
}  // namespace reshard::test
