// Steps in slices, groups and permuted parts. Carries out the rows and compares each element with the element of the
// list that is computed here, without layouts.
#include <gtest/gtest.h>

#include "rows/model_moves.hpp"

namespace reshard::test {
namespace {

// Cuts that keep pairs of rows, and cuts that do not.
constexpr const char* cuts[] = {"s", "s[32,32,0]", "s[31,2,31]", "s/1"};

TEST(Slices, TakeEveryStepOfADimension) {
    for (const char* const cut : cuts) {
        SCOPED_TRACE(cut);
        const MovedModel moved = moved_model(
            "gate_up u16[4,64,3]\n",
            fmt::format("source s=3\notherwise = [-, {}, -]\ntarget tp=4\n"
                        "gate = [-, tp, -] <- gate_up[:, 0::2, :]\nup = [tp, -, -] <- gate_up[:, 1::2, :]\n",
                        cut),
            4);
        for (std::size_t part = 0; part < 2; ++part)
            expect_elements(moved, part, [&](const Place& at) {
                return Element{"gate_up", (at[0] * 64 + 2 * at[1] + static_cast<Index>(part)) * 3 + at[2]};
            });
    }
}

TEST(Slices, OfEvenCutsAreOneMove) {
    const MovedModel moved =
        moved_model("gate_up u16[4,64,3]\n",
                    "source s=2\notherwise = [-, s, -]\ntarget tp=4\n"
                    "gate = [-, tp, -] <- gate_up[:, 0::2, :]\nup = [-, tp, -] <- gate_up[:, 1::2, :]\n",
                    4);
    EXPECT_EQ(moved.model.moves.size(), 2U);
}

TEST(Slices, HaveStepsInSeveralDimensions) {
    const MovedModel moved = moved_model("all u16[9,5,8]\n",
                                         "source s=2\nall = [-, -, s[5,3]]\ntarget tp=2\n"
                                         "some = [tp, -] <- all[2:9:3, 4, 1::4]\n",
                                         2);
    EXPECT_EQ(moved.model.targets[0].shape, (std::vector<Index>{3, 2}));
    expect_elements(moved, 0, [](const Place& at) {
        return Element{"all", ((2 + 3 * at[0]) * 5 + 4) * 8 + 1 + 4 * at[1]};
    });
}

// Row `row` of a tensor in groups: each group has rows of q, then of k, then of v.
Element grouped(const Place& at, Index columns, std::span<const Index> widths) {
    Index group = 0;
    for (const Index width : widths) group += width;
    Index within = at[0] % group;
    std::size_t part = 0;
    while (within >= widths[part]) within -= widths[part++];
    return {std::string(1, "qkv"[part]), (at[0] / group * widths[part] + within) * columns + at[1]};
}

TEST(Groups, HaveAShareOfEachPart) {
    constexpr Index widths[] = {8, 2, 2};
    for (const char* const source : {"s=1", "s=2", "s=3", "s=8"}) {
        SCOPED_TRACE(source);
        const MovedModel moved = moved_model("q u16[32,3]\nk u16[8,3]\nv u16[8,3]\n",
                                             fmt::format("source {}\notherwise = [s, -]\ntarget tp=2\n"
                                                         "qkv = [tp heads of 12, -] <- q ++ k ++ v in 4 groups\n",
                                                         source),
                                             8);
        expect_elements(moved, 0, [&](const Place& at) { return grouped(at, 3, widths); });
    }
}

TEST(Groups, AreTakenApartBySlicesOfEachPeriod) {
    for (const char* const cut : {"s heads of 12", "s[13,35]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved =
            moved_model("qkv u16[48,3]\n",
                        fmt::format("source s=2\nqkv = [{}, -]\ntarget tp=4\nq = [tp, -] <- qkv[0:8 of 12, :]\n"
                                    "kv = [tp heads of 2, -] <- qkv[8:10 of 12, :] + qkv[10:12 of 12, :]\n",
                                    cut),
                        4);
        expect_elements(moved, 0, [](const Place& at) {
            return Element{"qkv", (at[0] / 8 * 12 + at[0] % 8) * 3 + at[1]};
        });
        expect_elements(moved, 1, [](const Place& at) {
            const Index first = at[0] < 8 ? 8 : 10;
            return Element{"qkv", (at[0] % 8 / 2 * 12 + first + at[0] % 2) * 3 + at[1]};
        });
    }
}

TEST(Groups, OfSharedHeadsAreRepeated) {
    // Two kv heads of 2 rows for 4 ranks: each stands twice.
    const MovedModel moved = moved_model("qkv u16[24,3]\n",
                                         "source s=2\nqkv = [s, -]\ntarget tp=4\n"
                                         "all = [tp heads of 2, -] <- qkv[0:8 of 12, :] + qkv[8:10 of 12, :]\n",
                                         4);
    expect_elements(moved, 0, [](const Place& at) {
        const Index key = (at[0] - 16) / 4 * 12 + 8 + at[0] % 2;
        return Element{"qkv", (at[0] < 16 ? at[0] / 8 * 12 + at[0] % 8 : key) * 3 + at[1]};
    });
}

TEST(Groups, OfOneRowAreInterleavedInAStackOnAStage) {
    const MovedModel moved = moved_model("e.0.g u16[6,4]\ne.0.u u16[6,4]\ne.1.g u16[6,4]\ne.1.u u16[6,4]\n",
                                         "source s=2\notherwise = [s, -]\ntarget pp=2,tp=3\n"
                                         "w = [last@pp, -, tp heads of 4, -] <- e.{e:2}.g ++ e.{e:2}.u in 6 groups\n",
                                         6);
    expect_elements(moved, 0, [](const Place& at) {
        return Element{fmt::format("e.{}.{}", at[0], at[1] % 2 == 0 ? "g" : "u"), at[1] / 2 * 4 + at[2]};
    });
}

TEST(Order, OfAPartIsPermuted) {
    for (const char* const cut : {"[s, -, -]", "[-, s[7,1], -]", "[-, -, s]"}) {
        SCOPED_TRACE(cut);
        const MovedModel moved = moved_model("w u16[4,8,6]\nv u16[6,8]\n",
                                             fmt::format("source s=2\nw = {}\nv = [-, s]\ntarget tp=2\n"
                                                         "a = [-, tp, -] <- w[:, 1::2, :] permute(2,0,1)\n"
                                                         "also b = [tp, -] <- w[3, :, 2:6].T\n"
                                                         "c = [tp, -] <- v permute(1,0)\n",
                                                         cut),
                                             2);
        expect_elements(moved, 0, [](const Place& at) {
            return Element{"w", (at[1] * 8 + 1 + 2 * at[2]) * 6 + at[0]};
        });
        expect_elements(moved, 1, [](const Place& at) { return Element{"w", (3 * 8 + at[1]) * 6 + 2 + at[0]}; });
        expect_elements(moved, 2, [](const Place& at) { return Element{"v", at[1] * 8 + at[0]}; });
    }
}

TEST(Order, OffsetsPast32BitsAreRight) {
    const auto tensors = parse_tensors("w bf16[16777216,65536]\n");
    const auto model =
        apply_rules("source s=4\nw = [s, -]\ntarget t=4\nw = [t, -] <- w[:, 0::2] permute(1,0)\n", *tensors);
    ASSERT_TRUE(model) << describe(model.error());
    const auto schedule = RowSchedule::make(model->moves);
    ASSERT_TRUE(schedule) << describe(schedule.error());
    const std::vector<NestedRow> rows = schedule->nested_rows(3, RowSide::receive);
    ASSERT_EQ(rows.size(), 4U);
    // Column 49152 of the source is row 24576 of the target. The last source row of a rank is 2^22 - 1.
    EXPECT_EQ(rows[0].source_offset, 49152 * 2);
    EXPECT_EQ(rows[3].target_offset, Index{3} * 4194304 * 2);
}

}  // namespace
}  // namespace reshard::test
