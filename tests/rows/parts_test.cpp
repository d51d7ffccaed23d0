// Parts of fused tensors, the caller's storages, reshapes, lists, offsets past 32 bits, and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reshard/problem.hpp"
#include "reshard/text.hpp"
#include "rows/memory.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

const Mesh mesh{{"x", 2}, {"y", 2}};

Layout layout(const std::string& text) { return *parse_layout(mesh, text); }

std::shared_ptr<const Layout> shared(const std::string& text) { return std::make_shared<const Layout>(layout(text)); }

Index below(std::mt19937_64& random, Index bound) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(bound));
}

// The target has the slices of a source tensor along one dimension in another order, like the parts of a fused tensor.
struct Fused {
    Problem whole;  // both ends have one shape
    std::size_t dim = 0;
    std::vector<std::pair<Interval, Index>> slices;  // slices of the source, and the start of each in the target
    std::size_t other = 0;                           // another dimension, along which each slice is two parts
    Index border = 0;
};

std::optional<Fused> drawn(std::mt19937_64& random, const Problem& problem) {
    const std::vector<Index> extents = shape(problem.source);
    if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty() || extents.empty()) return std::nullopt;
    Fused fused{problem, static_cast<std::size_t>(below(random, std::ssize(extents))), {}, 0, 0};
    const Index extent = extents[fused.dim];
    for (Index begin = 0; begin < extent;) {
        const Index end = begin + 1 + below(random, extent - begin);
        fused.slices.push_back({{begin, end}, 0});
        begin = end;
    }
    std::ranges::shuffle(fused.slices, random);
    Index begin = 0;
    for (auto& [slice, place] : fused.slices) {
        place = begin;
        begin += slice.size();
    }
    fused.other = (fused.dim + 1) % extents.size();
    if (fused.other != fused.dim) fused.border = below(random, extents[fused.other] + 1);
    return fused;
}

std::vector<PartProblem> parts_of(const Fused& fused) {
    const auto source = std::make_shared<const Layout>(fused.whole.source);
    const auto target = std::make_shared<const Layout>(fused.whole.target);
    Box whole;
    for (const Index extent : shape(*source)) whole.push_back({0, extent});
    std::vector<PartProblem> parts;
    for (const auto& [slice, place] : fused.slices) {
        PartProblem part{{source, whole}, {target, whole}};
        (*part.source.box)[fused.dim] = slice;
        (*part.target.box)[fused.dim] = {place, place + slice.size()};
        if (fused.border > 0) {
            for (TensorPart* end : {&part.source, &part.target}) (*end->box)[fused.other].end = fused.border;
            parts.push_back(part);
            for (TensorPart* end : {&part.source, &part.target})
                (*end->box)[fused.other] = {fused.border, whole[fused.other].end};
        }
        parts.push_back(part);
    }
    return parts;
}

// The source element that becomes an element of the target.
Index origin_of(const Fused& fused, Index element) {
    Index stride = 1;
    const std::vector<Index> extents = shape(fused.whole.target);
    for (std::size_t k = fused.dim + 1; k < extents.size(); ++k) stride *= extents[k];
    const Index index = element / stride % extents[fused.dim];
    for (const auto& [slice, place] : fused.slices)
        if (place <= index && index < place + slice.size())
            return element + (slice.begin + index - place - index) * stride;
    return -1;
}

std::byte byte_of(const Fused& fused, bool target, Index element, Index byte) {
    return value_of_byte(target ? origin_of(fused, element) : element, byte);
}

TEST(RowParts, OfFusedTensorsMoveToTheirPlaces) {
    const int wanted = long_run() ? 20000 : cases(400);
    std::size_t rows = 0;
    int met = 0;
    for (std::uint64_t seed = drawn_seed(); met < wanted; ++seed) {
        std::mt19937_64 random(seed);
        const Index ranks = 1 + static_cast<Index>(seed % 9);
        const std::string question = random_question(seed, ranks);
        const auto fused = drawn(random, problem_of(question));
        if (!fused) continue;
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, question));
        const std::vector<PartProblem> parts = parts_of(*fused);
        const auto made = RowSchedule::make(parts);
        ASSERT_TRUE(made) << made.error().message;
        const auto sends = all_rows(*made, ranks, RowSide::send);
        ASSERT_EQ(mirror_fault(sends, all_rows(*made, ranks, RowSide::receive)), "");
        const auto value = [&](bool target) {
            return [&fused, target](Index element, Index byte) { return byte_of(*fused, target, element, byte); };
        };
        const Memory expected = tiles_of(fused->whole.target, ranks, value(true));
        Memory targets = blank_of(expected);
        std::vector<std::vector<int>> written = counters_of(targets);
        carry_out(sends, tiles_of(fused->whole.source, ranks, value(false)), targets, written);
        ASSERT_EQ(targets, expected);
        for (const auto& counts : written) ASSERT_TRUE(std::ranges::all_of(counts, [](int n) { return n == 1; }));
        for (const auto& of_rank : sends) rows += of_rank.size();
        ++met;
    }
    std::cout << fmt::format("{} fused tensors, {} rows, wrong 0\n", met, rows);
}

TEST(RowParts, MatricesOfAStackLieBehindEachOther) {
    // Two experts, each whole on one device, become a stack. x cuts the stack, and y cuts its rows.
    const Mesh one{{"x", 1}};
    std::vector<PartProblem> parts;
    const auto stack = shared("u8[2@x,2@y,3]");
    for (Index expert = 0; expert < 2; ++expert) {
        const Mesh home(one.axes, DeviceList{2 + expert});
        parts.push_back({{std::make_shared<const Layout>(*parse_layout(home, "u8[2,3]"))},
                         {stack, Box{{expert, expert + 1}, {0, 2}, {0, 3}}}});
    }
    const auto made = RowSchedule::make(parts);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->rows(0).empty());
    // Device 3 has expert 1. Devices 2 and 3 want its rows at the start of their tiles.
    EXPECT_EQ(made->rows(3), (std::vector<Row>{{1, 2, 0, 0, 3, 1, 0, 0}, {1, 3, 3, 0, 3, 1, 0, 0}}));
    EXPECT_EQ(made->rows(1, RowSide::receive), (std::vector<Row>{{0, 2, 3, 0, 3, 1, 0, 0}}));
}

TEST(RowParts, GateAndUpLieBehindEachOtherOnEachDevice) {
    // Each part is cut by itself: device 0 has rows 0 and 1 of gate, then rows 0 and 1 of up.
    const auto fused = shared("u8[8@x[2:0,4:1,6:0,8:1],5]");
    const auto half = shared("u8[4@x,5]");
    const std::vector<PartProblem> parts = {{{half}, {fused, Box{{0, 4}, {0, 5}}}},
                                            {{half}, {fused, Box{{4, 8}, {0, 5}}}}};
    const auto made = RowSchedule::make(parts);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->rows(0), (std::vector<Row>{{0, 0, 0, 0, 10, 1, 0, 0}, {1, 0, 0, 10, 10, 1, 0, 0}}));
}

TEST(RowParts, StoragesOfBothEndsAreWhereRowsPoint) {
    int met = 0;
    for (std::uint64_t seed = drawn_seed(); met < cases(400); ++seed) {
        const Index ranks = 1 + static_cast<Index>(seed % 7);
        const std::string question = random_question(seed, ranks);
        const Problem problem = problem_of(question);
        if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty()) continue;
        SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, question));
        const auto source = conformance::all_styles[seed % 6];
        const auto target = conformance::all_styles[seed / 6 % 6];
        RankStorages storages;
        Memory sources, targets, expected;
        for (Index rank = 0; rank < ranks; ++rank) {
            storages.source.push_back(storage_of(source, indices_of(problem.source, rank)));
            storages.target.push_back(storage_of(target, indices_of(problem.target, rank)));
            sources.push_back(image_of(problem.source, problem.source, rank, source, seed, std::nullopt).bytes);
            targets.push_back(conformance::blank_of(problem.target, rank, target).bytes);
            expected.push_back(image_of(problem.target, problem.source, rank, target, seed, std::nullopt).bytes);
        }
        const auto made = RowSchedule::make(problem, storages);
        ASSERT_TRUE(made) << made.error().message;
        const auto sends = all_rows(*made, ranks, RowSide::send);
        ASSERT_EQ(mirror_fault(sends, all_rows(*made, ranks, RowSide::receive)), "");
        std::vector<std::vector<int>> written = counters_of(targets);
        carry_out(sends, sources, targets, written);
        ASSERT_EQ(targets, expected);
        ++met;
    }
}

TEST(RowParts, AReshapeMovesInTheViewOfBoth) {
    // Rank r has rows 2r and 2r + 1 of 8, which are elements 12r to 12r + 11. It wants columns of another shape.
    const auto rows = schedule_rows(layout("u8[8@(x,y),6]"), layout("u8[4,12@(x,y)]"), 1);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(
        *rows,
        (std::vector<Row>{
            {0, 0, 0, 3, 3, 1, 0, 0}, {0, 1, 3, 3, 3, 1, 0, 0}, {0, 2, 6, 3, 3, 1, 0, 0}, {0, 3, 9, 3, 3, 1, 0, 0}}));
}

TEST(RowParts, RunsOfOneLengthAreOneRow) {
    const auto rows = [](const char* source, const char* target) {
        return *schedule_rows(layout(source), layout(target), 0);
    };
    // Columns of a tile: 4 runs of 3 bytes, 6 bytes apart in the source and side by side in the target.
    EXPECT_EQ(rows("u8[8@x,6]", "u8[8,6@x]"), (std::vector<Row>{{0, 0, 0, 0, 3, 4, 6, 3}, {0, 2, 3, 0, 3, 4, 6, 3}}));
    // Blocks of 2 become blocks of 4, as far as they are on the same device, and then one run each.
    EXPECT_EQ(rows("u8[32@x/2]", "u8[32@x/4]"), (std::vector<Row>{{0, 0, 0, 0, 2, 4, 4, 4}, {0, 2, 2, 0, 2, 4, 4, 4}}));
    // The longer of two loops has the strides; the other loop goes index by index.
    EXPECT_EQ(rows("u8[2,6,4,8]", "u8[2,6@x,4,8@y]"),
              (std::vector<Row>{{0, 0, 0, 0, 4, 12, 8, 4}, {0, 0, 192, 48, 4, 12, 8, 4}}));
}

TEST(RowParts, OffsetsPast32BitsAreRight) {
    // 2^20 x 2^14 elements of 4 bytes. A tile of rows has 2^35 bytes; the rows of a tile of columns have 2^15 bytes.
    const auto rows = schedule_rows(layout("f32[1048576@x,16384]"), layout("f32[1048576,16384@x]"), 2);
    ASSERT_TRUE(rows) << rows.error().message;
    const Index half = Index{1} << 19;
    EXPECT_EQ(*rows, (std::vector<Row>{{0, 0, 0, half * 32768, 32768, half, 65536, 32768},
                                       {0, 2, 32768, half * 32768, 32768, half, 65536, 32768}}));
    // One run of 2^34 bytes, and one offset past 2^40.
    const auto long_runs =
        schedule_rows(layout("u8[4398046511104]"), layout("u8[4398046511104@(x,y)]"), 3, RowSide::receive);
    ASSERT_TRUE(long_runs);
    EXPECT_EQ(*long_runs, (std::vector<Row>{{0, 3, 3298534883328, 0, 1099511627776, 1, 0, 0}}));
}

TEST(RowParts, EqualQuestionsAreKeptOnce) {
    const Problem one{layout("f32[8@x,4]"), layout("f32[8,4@y]")};
    const Problem other{layout("f32[8@y,4]"), layout("f32[8,4@y]")};
    const std::vector<Problem> list = {one, other, one, one};
    const auto made = RowSchedule::make(list);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->array_count(), 4U);
    EXPECT_EQ(made->question_count(), 2U);
    EXPECT_EQ(made->rank_count(), 4);
    for (const RowSide side : {RowSide::send, RowSide::receive}) {
        std::vector<Row> wanted;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto alone = schedule_rows(list[i].source, list[i].target, 1, side);
            ASSERT_TRUE(alone);
            for (const Row& row : *alone) {
                wanted.push_back(row);
                wanted.back().array = static_cast<Index>(i);
            }
        }
        EXPECT_EQ(made->rows(1, side), wanted);
        EXPECT_EQ(*schedule_rows(list, 1, side), wanted);
    }
    EXPECT_TRUE(made->rows(4).empty());
    EXPECT_TRUE(made->rows(-1).empty());
}

TEST(RowParts, WhatIsNoCopyIsRefused) {
    const auto message = [](const auto& result) { return result ? "" : result.error().message; };
    const Layout plain = layout("f32[8@x]");
    EXPECT_EQ(message(schedule_rows(layout("f32[8]{U:x}"), plain, 0)),
              "rows copy bytes, and an array in 2 summands (sum) must be reduced first");
    EXPECT_EQ(message(schedule_rows(plain, layout("f32[8]{max:x}"), 0)),
              "rows copy bytes, and an array in 2 summands (max) must be reduced first");
    EXPECT_NE(message(schedule_rows(plain, layout("i32[8]"), 0)), "");
    EXPECT_NE(message(schedule_rows(plain, layout("f32[9]"), 0)), "");
    const std::vector<Problem> list = {{plain, plain}, {plain, layout("f32[9]")}};
    EXPECT_EQ(message(schedule_rows(list, 0)).substr(0, 9), "array 1: ");
    const auto tensor = shared("f32[8@x]");
    const auto part = [&](Interval source, Interval target) {
        const PartProblem parts{{tensor, Box{source}}, {tensor, Box{target}}};
        return message(RowSchedule::make(std::span(&parts, 1)));
    };
    EXPECT_EQ(part({0, 4}, {4, 8}), "");
    EXPECT_EQ(part({0, 4}, {4, 7}), "array 0: the parts differ in element type, or in other extents than 1");
    EXPECT_EQ(part({0, 9}, {0, 9}), "array 0: the box has indices 0:9 of dimension 0, which has 8");
    const auto stored = [&](std::vector<Storage> source) {
        return message(RowSchedule::make(Problem{plain, plain}, {std::move(source), {}}));
    };
    const Storage dense{0, {1}};
    EXPECT_EQ(stored({dense, dense, dense, dense}), "");
    EXPECT_EQ(stored({dense}), "storages of 1 ranks for the source of 4");
    EXPECT_NE(stored({dense, {0, {1, 1}}, dense, dense}), "");
    EXPECT_NE(stored({dense, {0, {index_max / 4}}, dense, dense}), "");
    EXPECT_NE(stored({dense, {-1, {1}}, dense, dense}), "");
}

}  // namespace
}  // namespace reshard::test
