// Layouts with halos: text, places in the array, and sizes that do not fit.
#include <gtest/gtest.h>

#include "reshard/halo/halo.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

HaloLayout parsed(const std::string& text) {
    auto layout = parse_halo_layout(mesh, text);
    EXPECT_TRUE(layout) << text << ": " << layout.error().message;
    return layout.value_or(HaloLayout{});
}

std::string refused(const std::string& text, Code code) {
    const auto layout = parse_halo_layout(mesh, text);
    if (layout) return "accepted";
    EXPECT_EQ(layout.error().code, code) << layout.error().message;
    return layout.error().message;
}

TEST(HaloText, GoesThereAndBack) {
    for (const std::string& text :
         std::vector<std::string>{"f64[256@x~1%,256@y~(2,0),64]", "f32[]", "i8[10@(x,y)~(0,3)%]", "f64[7]",
                                  "f32[12@x[5,7]~2,9@y[4,0,5]~(1,2)%]", "f64[8@x/2,6@y~1]"})
        EXPECT_EQ(format(parsed(text)), text);
    const HaloLayout layout = parsed("f64[256 @x ~ 1 %, 256@y~( 2,0 ) ,64]");
    EXPECT_EQ(layout.halos, (std::vector<Halo>{{1, 1, true}, {2, 0, false}, {}}));
    EXPECT_EQ(format(parsed("f64[4@x~0]")), "f64[4@x]");
}

TEST(HaloText, SaysWhatIsWrongAndWhere) {
    EXPECT_NE(refused("f64[4@x~]", Code::syntax).find("the cells of a halo"), std::string::npos);
    EXPECT_NE(refused("f64[4@x~1 2]", Code::syntax).find("after a halo"), std::string::npos);
    EXPECT_NE(refused("f64[4@x~(1;2)]", Code::syntax).find("expected ','"), std::string::npos);
    EXPECT_NE(refused("f64[4@z~1]", Code::layout).find('z'), std::string::npos);
    EXPECT_NE(refused("f64[4@x~1", Code::syntax).find("expected"), std::string::npos);
    EXPECT_NE(refused("f64[4@x~99999999999999999999]", Code::overflow).find("64 bits"), std::string::npos);
    EXPECT_NE(refused("f64[8@x/2~1]", Code::unsupported).find("several blocks"), std::string::npos);
    EXPECT_NE(refused("f64[8@x~1]{U:y}", Code::unsupported).find("summands"), std::string::npos);
    EXPECT_NE(refused("f64[2@x~17%]", Code::unsupported).find("8 times"), std::string::npos);
}

TEST(HaloText, AnErrorOfTheRestNamesItsPlaceInTheWholeText) {
    const auto layout = parse_halo_layout(mesh, "f64[4@x~(1,1)%,5@z]");
    ASSERT_FALSE(layout);
    EXPECT_EQ(layout.error().text, "f64[4@x~(1,1)%,5@z]");
    EXPECT_EQ(layout.error().offset, 17U);
}

TEST(HaloLayout, PlacesAndCountsOfABlockInTheMiddle) {
    const HaloLayout layout = parsed("f64[6@x~(2,1)%,6@y~1]");
    const Index device = 1;  // x = 0, y = 1
    EXPECT_EQ(array_shape(layout, device), (std::vector<Index>{6, 4}));
    EXPECT_EQ(core_of(layout, device), (Box{{2, 5}, {1, 3}}));
    EXPECT_EQ(held_cells(layout, device), as_tile({{-2, 4}, {1, 5}}));
    EXPECT_EQ(received_elements(layout, device), 6 * 4 - 3 * 2);
    EXPECT_EQ(filled_of(layout, 0), (Box{{0, 6}, {1, 4}}));  // nothing before an open border
    EXPECT_EQ(array_shape(layout, 6), (std::vector<Index>{0, 0}));
}

TEST(HaloLayout, ElementsWithSeveralCellsComeOnce) {
    const HaloLayout layout = parsed("f64[6@x~5%]");
    EXPECT_EQ(array_shape(layout, 3), (std::vector<Index>{13}));
    EXPECT_EQ(distinct_cells(layout, 3), as_tile({{0, 6}}));
    EXPECT_EQ(received_elements(layout, 3), 3);
}

TEST(HaloLayout, CountsBeyond32Bits) {
    const HaloLayout layout = parsed("f64[3000000000@x~(2000000000,1000000000)%,2]");
    EXPECT_EQ(array_shape(layout, 0), (std::vector<Index>{4500000000, 2}));
    EXPECT_EQ(received_elements(layout, 0), 2 * (Index{3000000000} - 1500000000));
    HaloLayout wide = layout;
    wide.halos[1] = {index_max, index_max};
    ASSERT_FALSE(validate(wide));
    EXPECT_EQ(validate(wide).error().code, Code::overflow);
    wide.halos[1] = {Index{1} << 40, 0};
    ASSERT_FALSE(validate(wide));
    EXPECT_EQ(validate(wide).error().code, Code::overflow);
    wide.halos[1] = {-1, 0};
    EXPECT_EQ(validate(wide).error().code, Code::layout);
    wide.halos.pop_back();
    EXPECT_EQ(validate(wide).error().code, Code::layout);
}

}  // namespace
}  // namespace reshard
