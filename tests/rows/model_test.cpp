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

// Flattened tiles at either end or at both: the rows are those of the flattened tensors.
TEST(RowModel, FlattenedTilesComeFromWhereTheRulesSay) {
    constexpr Index ranks = 12;
    const MovedModel moved = moved_model("w u16[4,6]\nb u8[6,5,4]\nv f32[8,6]\nbias u16[24]\n",
                                         "source t=2,d=3\n"
                                         "w = [(-, t)@d[1,3,2]]\n"
                                         "b = [t, -, d[1,2,1]]\n"
                                         "v = [(t, -)@d]\n"
                                         "bias = [(t)@d[1,3,2]]\n"
                                         "target x=3,y=2[11,9,7,10,8,6]\n"
                                         "w = [y, x]\n"
                                         "b = [(-, -, y/1)@x[0,1,2]]\n"
                                         "moved = [(x:(1)3, -)@y] <- v\n"
                                         "bias = [x]\n",
                                         ranks);
    EXPECT_EQ(moved.fault, "");
    ASSERT_EQ(moved.targets.size(), 4U);
    for (std::size_t i = 0; i < moved.targets.size(); ++i) {
        const ShardedTensor& tensor = moved.model.targets[i];
        const std::string source = tensor.name == "moved" ? "v" : tensor.name;
        const Memory expected =
            tiles_of(*tensor.layout, ranks, [&](Index element, Index byte) { return value_in(source, element, byte); });
        EXPECT_EQ(moved.targets[i], expected) << tensor.name;
    }
    EXPECT_EQ(format(*moved.model.sources[0].layout), "u16[(4,6@t)@d[1,3,2]]");
    EXPECT_EQ(moved.model.sources[0].shape, (std::vector<Index>{4, 6}));
}

TEST(RowModel, FlattenedTensorsAreMovedAsTheyAre) {
    const auto refusal = [](const std::string& target) {
        const auto tensors = parse_tensors("w u16[4,6]\nv u16[4,6]\n").value();
        const auto model = apply_rules("source t=2\notherwise = -\ntarget t=2\n" + target, tensors);
        return model ? "made" : model.error().message;
    };
    const std::string as_it_is = "a flattened tensor moves as it is";
    EXPECT_NE(refusal("w = [(-, -)@t]\nv = [(t, -)]\n").find("expected an axis name"), std::string::npos);
    EXPECT_NE(refusal("w = [(-, -)@t] <- w[:, 0:3]\ndrop v\n").find(as_it_is), std::string::npos);
    EXPECT_NE(refusal("w = [(-, -)@t] <- w permute(1,0)\ndrop v\n").find(as_it_is), std::string::npos);
    EXPECT_NE(refusal("w = [(-, -)@t] <- w ++ v\n").find(as_it_is), std::string::npos);
    EXPECT_NE(refusal("w = [(-, -)@t] <- w + v\n").find("parts that are cut by themselves cannot be flattened"),
              std::string::npos);
    EXPECT_NE(refusal("w = [(-, - pad 0 to 8)@t]\nv = -\n").find("a padded tensor cannot be flattened"),
              std::string::npos);
    EXPECT_NE(refusal("w = [(-, -)@t[1,4]]\nv = -\n").find("5 units do not divide a tile of 24 elements"),
              std::string::npos);
    EXPECT_NE(refusal("w = [(-, t)@t]\nv = -\n"), "made");  // one axis twice
}

}  // namespace
}  // namespace reshard::test
