// Named pairs across meshes and cuts that peers refuse, replicate or get wrong.
#include <gtest/gtest.h>

#include "reshard/planner/simulate.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard::test {
namespace {

struct Across {
    const char* name;
    const char* source_mesh;
    const char* source;
    const char* target_mesh;
    const char* target;
    Index received;  ///< elements that the busiest device receives: the lower bound
};

class AcrossCases : public testing::TestWithParam<Across> {};

TEST_P(AcrossCases, IsPlannedAtTheBoundAndRight) {
    const Across& row = GetParam();
    const Layout source = parse_layout(parse_mesh(row.source_mesh).value(), row.source).value();
    const Layout target = parse_layout(parse_mesh(row.target_mesh).value(), row.target).value();
    std::vector<std::int64_t> array(static_cast<std::size_t>(global_bytes(source) / size_of(source.dtype)));
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::int64_t>(i * i + 7);
    for (const Objective objective : {Objective::bytes, Objective::time, Objective::steps}) {
        const auto made = synthesize(source, target, {.objective = objective});
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_EQ(made->verdict().lower_bound_bytes, row.received * size_of(source.dtype));
        EXPECT_EQ(made->verdict().received_bytes_max_device, made->verdict().lower_bound_bytes);
        EXPECT_LE(made->verdict().peak_bytes, made->verdict().floor_bytes);
        const auto end = simulate(made->plan(), distribute(source, array).value());
        ASSERT_TRUE(end) << end.error().message;
        EXPECT_TRUE(denotes(target, *end, array)) << format(made->plan());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Named, AcrossCases,
    testing::Values(Across{"OneToEightReplicated", "", "f32[64]", "y=8", "f32[64]", 64},
                    Across{"TwoToSix", "x=2", "f32[12@x,6]", "y=6", "f32[12@y,6]", 12},
                    Across{"OneDeviceToTiled", "", "f32[8,6]", "x=2,y=3", "f32[8@x,6@y]", 8},
                    Across{"TiledToOneDevice", "x=2,y=3", "f32[8@x,6@y]", "z=1[5]", "f32[8,6]", 40},
                    Across{"SixTrainersToTwoServers", "x=6", "f32[12@x,6]", "y=2[6-7]", "f32[12,6@y]", 36},
                    Across{"SameDevicesOtherOrder", "x=6", "f32[12@x]", "x=6[3,1,4,0,5,2]", "f32[12@x]", 2},
                    // PyTorch gathers a 5 x 3 tensor, sharded by both axes in nested chunks, as if it were cut at once.
                    Across{"NestedChunksGathered", "x=2,y=2", "f32[5@(x,y)[2,1,1,1],3]", "x=2,y=2", "f32[5,3]", 12},
                    Across{"BlockCyclicToRows", "x=4", "f32[20@x/2]", "x=4", "f32[20@x]", 5}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(AcrossUnit, OneHolderOfABigArrayScattersBeforeItGathers) {
    const Layout source = parse_layout(parse_mesh("").value(), "f32[67108864]").value();
    const Layout target = parse_layout(parse_mesh("y=8").value(), "f32[67108864]").value();
    const auto made = synthesize(source, target);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->rule, "scatter_then_gather");
    ASSERT_EQ(made->plan().steps.size(), 2U);
    EXPECT_EQ(made->plan().steps[1].kind, StepKind::all_gather);
}

}  // namespace
}  // namespace reshard::test
