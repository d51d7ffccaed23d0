#include "reshard/planner/view.hpp"

#include <gtest/gtest.h>

#include "reshard/planner/simulate.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

Layout layout_of(const char* mesh, const char* text) { return *parse_layout(*parse_mesh(mesh), text); }

std::pair<std::string, std::string> viewed(const char* mesh, const char* source, const char* target) {
    const auto made = in_common_view(layout_of(mesh, source), layout_of(mesh, target));
    if (!made) return {std::string(name(made.error().code)), made.error().message};
    return {format(made->first), format(made->second)};
}

using Pair = std::pair<std::string, std::string>;

TEST(ViewUnit, ShapesAreSplitWhereBothAllowIt) {
    EXPECT_EQ(viewed("x=2,y=3", "f32[24@x]", "f32[4@x,6@y]"), Pair("f32[4@x,6]", "f32[4@x,6@y]"));
    EXPECT_EQ(viewed("x=2,y=3", "f32[24@(x,y)]", "f32[2@x,12]"), Pair("f32[2@x,12@y]", "f32[2@x,12]"));
    EXPECT_EQ(viewed("x=2,y=3", "f32[4@x,6]", "f32[8@x,3@y]"), Pair("f32[4@x,2,3]", "f32[4@x,2,3@y]"));
    EXPECT_EQ(viewed("x=2,y=3", "f32[5,24@x]", "f32[5@y,1,4,6]"), Pair("f32[5,4@x,6]", "f32[5@y,4,6]"));
    EXPECT_EQ(viewed("x=2", "f32[5@x]", "f32[5@x]"), Pair("f32[5@x]", "f32[5@x]"));
}

TEST(ViewUnit, CutsAcrossTheSplitBecomePieces) {
    // Rows of 4 on three devices, cut between elements: 9, 9 and 6 of 24.
    EXPECT_EQ(viewed("y=3", "f32[24@y[9,9,6]]", "f32[6,4]").first, "f32[24@y/9]");
    EXPECT_EQ(viewed("y=2", "f32[8@y]", "f32[2,4@y]"), Pair("f32[2@y,4]", "f32[2,4@y]"));
    EXPECT_EQ(viewed("y=2", "f32[8@y[3,5]]", "f32[2,4@y]"), Pair("f32[8@y[3,5]]", "f32[8@y/2]"));
    EXPECT_EQ(viewed("y=4", "f32[6@y]", "f32[2,3]"), Pair("f32[6@y]", "f32[6]"));
}

TEST(ViewUnit, LayoutsAreWrittenInPartsOfTheirDimensions) {
    const auto written = [](const char* text, const std::vector<std::vector<Index>>& parts) {
        const auto made = in_parts(layout_of("x=2,y=4", text), parts);
        return made ? format(*made) : "none";
    };
    EXPECT_EQ(written("f32[1024@(x,y),1024]", {{2, 4, 128}, {1024}}), "f32[2@x,4@y,128,1024]");
    EXPECT_EQ(written("f32[1024@y,1024@x]", {{2, 512}, {2, 512}}), "f32[2@y:(1)2,512@y:(2)2,2@x,512]");
    EXPECT_EQ(written("f32[12@y]", {{3, 4}}), "none");
}

TEST(ViewUnit, PiecesAreWrittenAsDigits) {
    const auto written = [](const char* text) {
        const auto made = in_digits(layout_of("x=2,y=4", text));
        return made ? format(*made) : "none";
    };
    EXPECT_EQ(written("f32[64@y/2,3]"), "f32[8,4@y,2,3]");
    EXPECT_EQ(written("f32[64@(x,y)/1]"), "f32[8,8@(x,y)]");
    EXPECT_EQ(written("f32[8@(x,y)[1:0,2:4,3:1,4:5,5:2,6:6,7:3,8:7]]"), "f32[4@y,2@x]");
    EXPECT_EQ(written("f32[16@x/2,8@y]"), "f32[4,2@x,2,8@y]");
    EXPECT_EQ(written("f32[16@x[4:0,8:1,12:1,16:0]]"), "none");  // zigzag
    EXPECT_EQ(written("f32[15@x/2]"), "none");
    EXPECT_EQ(written("f32[12@y[3,2,4,3]]"), "none");
}

TEST(ViewUnit, OtherArraysAreRefused) {
    EXPECT_EQ(viewed("x=2", "f32[24@x]", "f32[4,7]").first, "mismatch");
    EXPECT_EQ(viewed("x=2", "f32[24@x]", "f64[24]").first, "mismatch");
    EXPECT_EQ(viewed("x=2", "f32[4194305,3@x]", "f32[12582915@x]").first, "unsupported");
}

TEST(ViewUnit, EveryDeviceHoldsTheSameElementsInTheSameOrder) {
    const std::array<std::array<const char*, 2>, 8> pairs = {{{"f32[24@(x,y)]", "f32[4@y,6@x]"},
                                                              {"f32[24@y/5]", "f32[2,3@y,4]"},
                                                              {"f32[4,6@(y,x)]", "f32[24]"},
                                                              {"f32[5@y,2@x]", "f32[10@(x,y)]"},
                                                              {"f32[]", "f32[1@x,1]"},
                                                              {"f32[6,1,4@x]", "f32[3@y,8]"},
                                                              {"f32[0,3@x]", "f32[3,0]"},
                                                              {"f32[7@x,2]", "f32[2,7@y]"}}};
    for (const auto& [source, target] : pairs) {
        SCOPED_TRACE(std::string(source) + " -> " + target);
        const Layout from = layout_of("x=2,y=3", source);
        const Layout to = layout_of("x=2,y=3", target);
        const auto made = in_common_view(from, to);
        ASSERT_TRUE(made) << made.error().message;
        std::vector<std::int64_t> array(static_cast<std::size_t>(global_bytes(from) / 4));
        for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::int64_t>(i);
        EXPECT_EQ(*distribute(from, array), *distribute(made->first, array));
        EXPECT_EQ(*distribute(to, array), *distribute(made->second, array));
        const auto plan = synthesize(made->first, made->second);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_EQ(*simulate(plan->plan(), *distribute(from, array)), *distribute(to, array));
    }
}

}  // namespace
}  // namespace reshard
