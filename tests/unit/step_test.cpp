#include "reshard/planner/step.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "reshard/text.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const char* text) { return *parse_layout(mesh, text); }
Result<Move> type(StepKind kind, const char* before, const char* after) {
    return type_step(at(before), {kind, at(after)});
}

TEST(StepUnit, EveryKindReadsItsOwnName) {
    for (const StepKind kind : all_step_kinds) EXPECT_EQ(*parse_step_kind(name(kind)), kind);
    EXPECT_EQ(parse_step_kind("gather").error().code, Code::syntax);
    EXPECT_TRUE(is_local(StepKind::slice));
    EXPECT_TRUE(is_local(StepKind::zero_fill));
    EXPECT_FALSE(is_local(StepKind::permute));
    EXPECT_TRUE(is_local(StepKind::view));
}

TEST(StepUnit, AViewHoldsTheSameTilesInAnotherShape) {
    const auto why = [](const char* before, const char* after) {
        const auto move = type(StepKind::view, before, after);
        return move ? std::string("typed") : move.error().message;
    };
    EXPECT_EQ(*type(StepKind::view, "f32[12@(x,y),6]", "f32[2@x,6@y,6]"), Move{});
    EXPECT_EQ(why("f32[2@x,6@y,6]", "f32[12@(x,y),6]"), "typed");
    EXPECT_EQ(why("f32[24@y/4]", "f32[2,3@y,4]"), "typed");
    EXPECT_EQ(why("f32[12@(x,y),6]", "f32[2@x,6,6@y]"), "not a view: devices would hold other elements");
    EXPECT_EQ(why("f32[12@x]", "f32[12@y]"), "not a view: the shape of the array does not change");
    EXPECT_EQ(why("f32[12]{U:x}", "f32[3,4]{U:y}"), "not a view: devices would hold other elements");
    EXPECT_EQ(type(StepKind::view, "f32[12@x]", "f32[2@x,7]").error().code, Code::mismatch);
    EXPECT_FALSE(type(StepKind::slice, "f32[12]", "f32[2@x,6]").has_value());
}

TEST(StepUnit, ACastChangesTheElementTypeAlone) {
    const auto why = [](const char* before, const char* after) {
        const auto move = type(StepKind::cast, before, after);
        return move ? std::string("typed") : move.error().message;
    };
    EXPECT_TRUE(is_local(StepKind::cast));
    EXPECT_EQ(*type(StepKind::cast, "f32[12@x,6]", "bf16[12@x,6]"), Move{});
    EXPECT_EQ(why("f8_e5m2[12]", "f8_e4m3fn[12]"), "typed");
    EXPECT_EQ(why("u8[12]", "i16[12]"), "typed");
    EXPECT_EQ(why("f32[12@x]", "f32[12@x]"), "not a cast: nothing changes");
    EXPECT_EQ(why("f32[12@x]", "bf16[12@y]"), "not a cast: more than the element type changes");
    EXPECT_EQ(why("f32[12@x]", "bf16[3,4@x]"), "not a cast: more than the element type changes");
    EXPECT_EQ(why("i16[12]", "u32[12]"), "not a cast: i16 does not become u32");
    EXPECT_EQ(why("f32[12]", "i32[12]"), "not a cast: f32 does not become i32");
    EXPECT_EQ(why("bool[12]", "i8[12]"), "not a cast: bool does not become i8");
    EXPECT_EQ(why("bf16[12]{U:x}", "f32[12]{U:x}"), "typed");
    EXPECT_EQ(why("f32[12]{U:x}", "bf16[12]{U:x}"), "not a cast: summands of f32 are reduced before they become bf16");
    EXPECT_FALSE(type(StepKind::slice, "f32[12]", "bf16[12@x]").has_value());
}

TEST(StepUnit, ASliceIsFree) {
    const auto move = type(StepKind::slice, "f32[12,6@x]", "f32[12@y,6@x]");
    ASSERT_TRUE(move.has_value());
    EXPECT_EQ(move->received, 0);
    EXPECT_EQ(move->messages, 0);
}

TEST(StepUnit, AGatherReceivesTheOthersTiles) {
    const auto move = type(StepKind::all_gather, "f32[12@(x,y)]", "f32[12@x]");
    ASSERT_TRUE(move.has_value());
    EXPECT_EQ(*move, (Move{{{3, 1}}, 3, 4, 4, 2, true}));
}

TEST(StepUnit, SummandsOfOneReductionDoNotBecomeSummandsOfAnother) {
    for (const StepKind kind : all_step_kinds) {
        const auto move = type(kind, "f32[12@x]{max:y}", "f32[12]{min:(x,y)}");
        ASSERT_FALSE(move.has_value()) << name(kind);
        EXPECT_NE(move.error().message.find("max"), std::string::npos);
        EXPECT_FALSE(type(kind, "f32[12@x]{max:y}", "f32[12@x]{U:y}").has_value()) << name(kind);
    }
    EXPECT_TRUE(type(StepKind::all_gather, "f32[12@x]{max:y}", "f32[12]{max:y}").has_value());
    // If nothing is unreduced, the reduction is ignored.
    Layout reduced = at("f32[12@x]");
    reduced.reduction = Reduction::prod;
    EXPECT_EQ(reduced, at("f32[12@x]"));
    EXPECT_TRUE(type_step(at("f32[12@x]{max:y}"), {StepKind::all_reduce, reduced}).has_value());
}

TEST(StepUnit, AGatherOfTheMajorAxisIsNotTyped) {
    const auto move = type(StepKind::all_gather, "f32[12@(x,y)]", "f32[12@y]");
    ASSERT_FALSE(move.has_value());
    EXPECT_EQ(move.error().code, Code::step);
    EXPECT_NE(move.error().message.find("prefix"), std::string::npos);
}

TEST(StepUnit, AnAllToAllMovesSuffixesInAnyOrder) {
    const auto move = type(StepKind::all_to_all, "f32[12@(x,y),12]", "f32[12,12@(y,x)]");
    ASSERT_TRUE(move.has_value());
    EXPECT_EQ(move->group_size, 6);
    EXPECT_EQ(move->received, 24 * 5 / 6);
    EXPECT_FALSE(type(StepKind::all_to_all, "f32[12@x,12]", "f32[12,12@y]").has_value());
}

TEST(StepUnit, APermuteKeepsTheTileShape) {
    const Mesh square{{"a", 2}, {"b", 2}};
    const Layout before = *parse_layout(square, "f32[4@a,4@b]");
    EXPECT_TRUE(type_step(before, {StepKind::permute, *parse_layout(square, "f32[4@b,4@a]")}).has_value());
    EXPECT_FALSE(type_step(before, {StepKind::permute, *parse_layout(square, "f32[4@(a,b),4]")}).has_value());
}

// Replicas are equal under any names.
TEST(StepUnit, APermuteThatLeavesEveryTileReceivesNothing) {
    const auto received = [](const char* source, const char* target) {
        return type_step(*parse_layout(*parse_mesh("x=4[0,1,2,3]"), source),
                         {StepKind::permute, *parse_layout(*parse_mesh("x=4[3,2,1,0]"), target)})
            ->received;
    };
    EXPECT_EQ(received("u8[4]", "u8[4]"), 0);
    EXPECT_EQ(received("u8[4@x]", "u8[4@x]"), 1);
}

TEST(StepUnit, ReductionsReceiveWhatTheTableSays) {
    const auto scatter = type(StepKind::reduce_scatter, "f32[12]{U:y}", "f32[12@y]");
    ASSERT_TRUE(scatter.has_value());
    EXPECT_EQ(scatter->received, 8);
    const auto reduce = type(StepKind::all_reduce, "f32[12]{U:y}", "f32[12]");
    ASSERT_TRUE(reduce.has_value());
    EXPECT_EQ(reduce->received, 16);
    EXPECT_FALSE(type(StepKind::all_reduce, "f32[12]", "f32[12@y]").has_value());
}

TEST(StepUnit, AZeroFillIsFreeFromReplicasAndFromSuffixes) {
    EXPECT_EQ(type(StepKind::zero_fill, "f32[12]", "f32[12]{U:y}")->received, 0);
    EXPECT_EQ(type(StepKind::zero_fill, "f32[12@(x,y)]", "f32[12@x]{U:y}")->received, 0);
    EXPECT_FALSE(type(StepKind::zero_fill, "f32[12@(x,y)]", "f32[12@y]{U:x}").has_value());
}

TEST(StepUnit, AnExchangeReceivesWhatItLacks) {
    const auto move = type(StepKind::exchange, "f32[12@x]", "f32[12@y]");
    ASSERT_TRUE(move.has_value());
    EXPECT_EQ(move->received, 4);
    EXPECT_FALSE(type(StepKind::exchange, "f32[12]{U:x}", "f32[12]").has_value());
    EXPECT_TRUE(type(StepKind::exchange, "f32[5@x]", "f32[5@y]").has_value());
}

TEST(StepUnit, NothingChangingIsNoStep) {
    for (const StepKind kind : all_step_kinds) {
        const auto move = type(kind, "f32[12@x]", "f32[12@x]");
        ASSERT_FALSE(move.has_value());
        EXPECT_NE(move.error().message.find("nothing changes"), std::string::npos);
    }
}

TEST(StepUnit, BoundariesMustNestWhereSizesDoNotDivide) {
    const Mesh line{{"a", 2}, {"b", 2}};
    const auto at_line = [&](const char* text) { return *parse_layout(line, text); };
    // 6 over 2 is 3, and 6 over 4 is 2: a tile of 3 is not two tiles of 2.
    EXPECT_FALSE(type_step(at_line("f32[6@a]"), {StepKind::slice, at_line("f32[6@(a,b)]")}).has_value());
    // 7 over 2 is 4, and 7 over 4 is 2: a tile of 4 is two tiles of 2.
    EXPECT_TRUE(type_step(at_line("f32[7@a]"), {StepKind::slice, at_line("f32[7@(a,b)]")}).has_value());
}

TEST(StepUnit, ForeignElementsOfKnownPairs) {
    EXPECT_EQ(missing_elements(at("f32[12@x]"), at("f32[12]")), 6);
    EXPECT_EQ(missing_elements(at("f32[12]"), at("f32[12@x]")), 0);
    EXPECT_EQ(missing_elements(at("f32[12@x,12]"), at("f32[12,12@x]")), 36);
    EXPECT_EQ(missing_elements(at("f32[12@x]"), at("f32[12@y]")), 4);
    EXPECT_EQ(missing_elements(at("f32[5@x]"), at("f32[5@y]")), 2);
}

Index most_lacking(const Layout& before, const Layout& after) {
    Index most = 0;
    for (Index device = 0; device < device_count(after); ++device) {
        Index wanted = 1;
        Index kept = value_of(before.unreduced, device) == value_of(after.unreduced, device) ? 1 : 0;
        for (std::size_t i = 0; i < after.dims.size(); ++i) {
            const Interval has = interval(before.dims[i], value_of(before.dims[i].atoms, device));
            const Interval wants = interval(after.dims[i], value_of(after.dims[i].atoms, device));
            wanted *= wants.size();
            kept *= std::max<Index>(0, std::min(has.end, wants.end) - std::max(has.begin, wants.begin));
        }
        most = std::max(most, wanted - kept);
    }
    return most;
}

// From some thousand devices on, shard numbers are composed from two halves of the device number.
TEST(StepUnit, ForeignElementsOfThousandsOfDevicesAreThoseOfEachLookedAt) {
    const Mesh large{{"x", 16}, {"y", 24}, {"z", 32}};
    const char* const texts[] = {"f32[1000@(y,x),777]",
                                 "f32[1000@y,777@(x,z)]",
                                 "f32[1000@(z,y:(1)3),777@x]",
                                 "f32[1000@(y:(3)8,z),777@y:(1)3]",
                                 "f32[1000@(x,y:(1)8),777@z]",
                                 "f32[1000@(x,y,z),777]",
                                 "f32[1000@x:(4)4,777@(y:(1)2,x:(1)4,z:(8)4)]"};
    for (const char* before : texts)
        for (const char* after : texts) {
            const Layout held = *parse_layout(large, before);
            const Layout wanted = *parse_layout(large, after);
            EXPECT_EQ(missing_elements(held, wanted), most_lacking(held, wanted)) << before << " to " << after;
        }
}

TEST(StepUnit, BillionsOfDevicesCostNothingToType) {
    const Mesh huge{{"a", Index{1} << 20}, {"b", Index{1} << 20}};
    const auto before = *parse_layout(huge, "f32[1048576@a,1048576]");
    const auto after = *parse_layout(huge, "f32[1048576,1048576@a]");
    const auto move = type_step(before, {StepKind::all_to_all, after});
    ASSERT_TRUE(move.has_value());
    EXPECT_EQ(move->received, (Index{1} << 20) - 1);
}

}  // namespace
}  // namespace reshard
