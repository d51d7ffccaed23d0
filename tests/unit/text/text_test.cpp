#include "reshard/text.hpp"

#include <gtest/gtest.h>

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 6}};

TEST(TextUnit, MeshesAreReadAndPrinted) {
    EXPECT_EQ(*parse_mesh("x=2,y=6"), mesh);
    EXPECT_EQ(format(mesh), "x=2,y=6");
    EXPECT_EQ(*parse_mesh(""), Mesh{});
}

TEST(TextUnit, LayoutsAreReadMajorToMinor) {
    const auto layout = parse_layout(mesh, "f32[12@(y:(2)3,x),4]{U:y:(1)2}");
    ASSERT_TRUE(layout.has_value());
    EXPECT_EQ(layout->dims[0].atoms, (AtomList{{3, 1}, {2, 6}}));
    EXPECT_EQ(layout->unreduced, (AtomList{{2, 3}}));
    EXPECT_EQ(format(*layout), "f32[12@(y:(2)3,x),4]{U:y:(1)2}");
}

TEST(TextUnit, RankZeroHasEmptyBrackets) {
    EXPECT_EQ(format(*parse_layout(mesh, "bf16[]")), "bf16[]");
    EXPECT_TRUE(parse_layout(mesh, "bf16[]")->dims.empty());
}

TEST(TextUnit, DigitsThatNoAxisHasAreReadBack) {
    Layout layout = parse_layout(mesh, "f32[12]").value();
    layout.dims[0].atoms = {{3, 4}};  // begins inside y, and ends inside it
    EXPECT_EQ(format(layout), "f32[12@?3:4]");
    EXPECT_EQ(parse_layout(mesh, format(layout)).value(), layout);
    for (const char* text : {"f32[12@?]", "f32[12@?3]", "f32[12@?3:]", "f32[12@?0:4]", "f32[12@?3:0]", "f32[12@?5:1]",
                             "f32[12@?3:8]", "f32[12@?4:9223372036854775807]", "f32[12@(x,?2:6)]", "f32[12@?-3:4]"})
        EXPECT_FALSE(parse_layout(mesh, text).has_value()) << text;
}

TEST(TextUnit, APlanPrintsAsItIsRead) {
    const std::string text = "mesh x=2,y=6\nsource f32[12@x]\nall_gather f32[12]\nslice f32[12@y]\ntarget f32[12@y]\n";
    EXPECT_EQ(format(*parse_plan(text)), text);
}

struct Bad {
    const char* text;
    std::size_t offset;  ///< offset of the first wrong place
};

TEST(TextUnit, BadLayoutsPointAtTheFirstWrongPlace) {
    for (const Bad& bad : {Bad{"f33[4]", 0}, Bad{"f32", 3}, Bad{"f32[4", 5}, Bad{"f32[4@q]", 6}, Bad{"f32[4@(x,q)]", 9},
                           Bad{"f32[4@x,]", 8}, Bad{"f32[-4]", 4}, Bad{"f32[4]x", 6}, Bad{"f32[4@x", 7},
                           Bad{"f32[99999999999999999999]", 4}}) {
        const auto layout = parse_layout(mesh, bad.text);
        ASSERT_FALSE(layout.has_value()) << bad.text;
        EXPECT_EQ(layout.error().text, bad.text);
        EXPECT_EQ(layout.error().offset, bad.offset) << describe(layout.error());
    }
}

TEST(TextUnit, BadMeshesAreRefused) {
    for (const char* text : {"x", "x=", "x=2,", "=2", "x=0", "x=2,x=3", "x=-1", "x=2 y=3", "x=99999999999999999999",
                             "x=4611686018427387904,y=4"}) {
        EXPECT_FALSE(parse_mesh(text).has_value()) << text;
    }
}

TEST(TextUnit, SubAxesThatOverlapOrDoNotDivideAreRefused) {
    for (const char* text : {"f32[12@y:(4)2]", "f32[12@(y,y)]", "f32[12@(y:(1)2,y:(1)3)]", "f32[12@y:(0)2]",
                             "f32[12@x]{U:x}", "f8_e5m2[12]{U:x}"}) {
        EXPECT_FALSE(parse_layout(mesh, text).has_value()) << text;
    }
}

TEST(TextUnit, BadPlansSayWhichLineIsWrong) {
    for (const char* text :
         {"", "mesh x=2\n", "mesh x=2\nsource f32[4]\n", "mesh x=2\nsource f32[4]\ntarget f32[4@q]\n",
          "mesh x=2\nsource f32[4]\nfly f32[4@x]\ntarget f32[4@x]\n", "source f32[4]\nmesh x=2\ntarget f32[4]\n",
          "mesh x=2\nsource f32[4]\ntarget f32[4]\nslice f32[4@x]\n"}) {
        const auto plan = parse_plan(text);
        ASSERT_FALSE(plan.has_value()) << text;
        EXPECT_LE(plan.error().offset, plan.error().text.size());
        EXPECT_FALSE(plan.error().message.empty());
    }
}

TEST(TextUnit, BytesForPeople) {
    EXPECT_EQ(format_bytes(0), "0");
    EXPECT_EQ(format_bytes(512), "512 B");
    EXPECT_EQ(format_bytes(Index{96} << 20), "96.0 MiB");
    EXPECT_EQ(*parse_bytes("96MiB"), Index{96} << 20);
    EXPECT_EQ(*parse_bytes("1.5GiB"), Index{3} << 29);
    EXPECT_EQ(*parse_bytes("2GB"), 2'000'000'000);
    EXPECT_EQ(*parse_bytes("1024"), 1024);
    for (const char* text : {"", "MiB", "-1", "1.5.5GiB", "1QiB", "64mb", "1 x", "1 2", "1e30", "nan"})
        EXPECT_FALSE(parse_bytes(text).has_value()) << text;
    EXPECT_EQ(parse_bytes("9999999999GiB").error().code, Code::overflow);
}

}  // namespace
}  // namespace reshard
