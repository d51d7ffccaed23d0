// A small model by rules: fused, stacked, split, renamed and in blocks. Carries out its rows and compares every byte
// with the byte that should have arrived.
#include <gtest/gtest.h>

#include "rows/model_moves.hpp"

namespace reshard::test {
namespace {

constexpr const char* list =
    "q u16[8,6]\nk u16[4,6]\nv u16[4,6]\nnorm f32[6]\nhead u8[10,3]\nboth u8[2,4,3]\n"
    "e.0.gate u8[4,6]\ne.1.gate u8[4,6]\ne.2.gate u8[4,6]\ne.3.gate u8[4,6]\n"
    "e.0.up u8[4,6]\ne.1.up u8[4,6]\ne.2.up u8[4,6]\ne.3.up u8[4,6]\n"
    "e.0.gate_scale f32[2,3]\ne.1.gate_scale f32[2,3]\ne.2.gate_scale f32[2,3]\ne.3.gate_scale f32[2,3]\n"
    "e.0.up_scale f32[2,3]\ne.1.up_scale f32[2,3]\ne.2.up_scale f32[2,3]\ne.3.up_scale f32[2,3]\n";

constexpr const char* rules =
    "source dp=2,tp=2\n"
    "e.{n:4}.{which} = [{n}@(dp,tp), -, -]\n"
    "head = [tp[7,3], -]\n"
    "both = [-, tp, -]\n"
    "norm = -\n"
    "otherwise = [tp, -]\n"
    "target ep=2,tp=2[2,3,5,4]\n"
    "qkv = [tp, -] <- q + k + v\n"
    "e.w13 = [ep, tp, -] <- e.{n:4}.gate + e.{n:4}.up\n"
    "e.w13_scale = blocks 2 of e.w13 <- e.{n:4}.gate_scale + e.{n:4}.up_scale\n"
    "part.{i:2} = [-, tp] <- both[{i}, 0:3, :]\n"
    "rest = - <- both[:, 3, :]\n"
    "out.head = [(ep,tp), -] <- head\n"
    "otherwise = -\n";

struct Origin {
    std::string name;
    Index element = 0;
};

// The source of an element of a target tensor, computed by hand.
Origin origin_of(const std::string& target, Index element) {
    if (target == "norm") return {"norm", element};
    if (target == "out.head") return {"head", element};
    if (target == "qkv") {
        const Index row = element / 6;
        const std::string name = row < 8 ? "q" : row < 12 ? "k" : "v";
        return {name, element - (row < 8 ? 0 : row < 12 ? 8 : 12) * 6};
    }
    if (target == "rest") return {"both", element / 3 * 12 + 9 + element % 3};
    if (target.starts_with("part.")) return {"both", (target.back() - '0') * 12 + element};
    const bool scale = target == "e.w13_scale";
    const Index half = scale ? 6 : 24;  // elements of gate and of up
    const Index expert = element / (2 * half);
    const Index inner = element % (2 * half);
    return {fmt::format("e.{}.{}{}", expert, inner < half ? "gate" : "up", scale ? "_scale" : ""), inner % half};
}

TEST(RowModel, EveryByteComesFromWhereTheRulesSay) {
    constexpr Index ranks = 6;
    const MovedModel moved = moved_model(list, rules, ranks);
    EXPECT_EQ(moved.fault, "");
    ASSERT_EQ(moved.targets.size(), 8U);
    for (std::size_t i = 0; i < moved.targets.size(); ++i) {
        const ShardedTensor& tensor = moved.model.targets[i];
        const Memory expected = tiles_of(*tensor.layout, ranks, [&](Index element, Index byte) {
            const Origin origin = origin_of(tensor.name, element);
            return value_in(origin.name, origin.element, byte);
        });
        EXPECT_EQ(moved.targets[i], expected) << tensor.name;
    }
}

}  // namespace
}  // namespace reshard::test
