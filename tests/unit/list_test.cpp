// Many arrays: what the judge says of a list, and what the search makes of a limit.
#include "reshard/algebra/list.hpp"

#include <gtest/gtest.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;

Problem moved(std::string_view mesh, std::string_view source, std::string_view target_mesh, std::string_view target) {
    return {parse_layout(parse_mesh(mesh).value(), source).value(),
            parse_layout(parse_mesh(target_mesh).value(), target).value()};
}

Problem grows() { return moved("x=2", "f32[512@x]", "x=2", "f32[512]"); }        // 1 KiB to 2 KiB
Problem shrinks() { return moved("x=2", "f32[512]", "x=2", "f32[512@x]"); }      // 2 KiB to 1 KiB
Problem stays() { return moved("x=2", "f32[512@x,2]", "x=2", "f32[512,2@x]"); }  // 2 KiB to 2 KiB

ListPlan planned(const std::vector<Problem>& problems, Buckets buckets) {
    ListPlan list = synthesize(std::span<const Problem>(problems)).value().list();
    list.buckets = std::move(buckets);
    return list;
}

TEST(ListUnit, WithoutDonationAllEndsAreHeldAllTheTime) {
    const ListPlan list = planned({grows(), shrinks(), stays()}, {{0}, {1, 2}});
    const auto verdict = check(list);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_EQ(verdict->ends_bytes, 10 * 1024);
    EXPECT_EQ(verdict->footprint_bytes, 10 * 1024);
    EXPECT_EQ(verdict->bucket_bytes, (std::vector<Index>{10 * 1024, 10 * 1024}));
    EXPECT_EQ(verdict->plans.size(), 3U);
}

TEST(ListUnit, ADonatedSourceTakesTilesBetweenSteps) {
    const Plan plan = *parse_plan(
        "mesh x=2\nsource f32[8@x,8]\nall_to_all f32[8,8@x]\nall_to_all f32[8@x,8]\nall_to_all f32[8,8@x]\n"
        "target f32[8,8@x]\n");
    const ListPlan list = in_one_bucket({plan, plan});
    EXPECT_EQ(check(list)->footprint_bytes, 4 * 128 + 128);
    EXPECT_EQ(check(list, {.donate = true})->footprint_bytes, 4 * 128);
}

TEST(ListUnit, ADonatedSourceIsGoneWhenItsBucketIsDone) {
    const ListPlan list = planned({grows(), shrinks(), stays()}, {{1}, {0, 2}});
    const auto verdict = check(list, {.donate = true});
    ASSERT_TRUE(verdict) << verdict.error().message;
    // Sources 1 + 2 + 2 and target 1; then sources 1 + 2 and targets 1 + 2 + 2.
    EXPECT_EQ(verdict->bucket_bytes, (std::vector<Index>{6 * 1024, 8 * 1024}));
    EXPECT_EQ(verdict->footprint_bytes, 8 * 1024);
}

TEST(ListUnit, EndsOnOtherDevicesDoNotAddUp) {
    const Problem across = moved("x=2", "f32[512@x]", "x=2[2-3]", "f32[512]");
    const ListPlan list = planned({across, across}, {{0, 1}});
    EXPECT_EQ(typical_devices(list.plans).size(), 2U);
    EXPECT_EQ(check(list)->footprint_bytes, 4 * 1024);  // the target's devices have most
    EXPECT_EQ(world_size(list), 4);
}

TEST(ListUnit, BucketsThatAreNoneAreRefused) {
    const std::vector<Problem> problems = {grows(), stays()};
    for (const Buckets& buckets :
         {Buckets{{0}}, Buckets{{0, 1}, {1}}, Buckets{{0, 1}, {}}, Buckets{{0, 2}}, Buckets{}}) {
        const auto verdict = check(planned(problems, buckets));
        ASSERT_FALSE(verdict);
        EXPECT_EQ(verdict.error().code, Code::plan) << verdict.error().message;
    }
    EXPECT_TRUE(check(in_one_bucket({})));
}

TEST(ListUnit, AnArrayThatDoesNotArriveIsNamed) {
    ListPlan list = planned({grows(), stays()}, {{0, 1}});
    list.plans[1].steps.clear();
    const auto verdict = check(list);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().message.substr(0, 9), "array 1: ");
}

TEST(ListUnit, TheOrderCountsInTheFingerprint) {
    const std::vector<Problem> problems = {grows(), stays()};
    const auto one = fingerprint(planned(problems, {{0, 1}}));
    EXPECT_EQ(one, fingerprint(planned(problems, {{0, 1}})));
    EXPECT_NE(one, fingerprint(planned(problems, {{0}, {1}})));
    EXPECT_NE(fingerprint(planned(problems, {{1}, {0}})), fingerprint(planned(problems, {{0}, {1}})));
    EXPECT_NE(one, fingerprint(planned({stays(), grows()}, {{0, 1}})));
}

TEST(ListUnit, WithoutALimitThereIsOneBucket) {
    const std::vector<Problem> problems = {grows(), shrinks(), stays()};
    const auto made = synthesize(std::span<const Problem>(problems), {}, {.donate = true});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->list().buckets, (Buckets{{0, 1, 2}}));
    EXPECT_EQ(made->verdict(), check(made->list(), {.donate = true}).value());
}

// What shrinks goes first, what grows last; with room to spare they share buckets.
TEST(ListUnit, OrderAndBucketsKeepTheLimit) {
    const std::vector<Problem> problems = {grows(), stays(), shrinks(), grows(), shrinks()};  // sources 8 KiB
    const auto at = [&](Index kibibytes) {
        return synthesize(std::span<const Problem>(problems), {},
                          {.footprint_bytes_max = kibibytes * 1024, .donate = true});
    };
    const auto tight = at(9);
    ASSERT_TRUE(tight) << tight.error().message;
    EXPECT_EQ(tight->floor_bytes, 9 * 1024);
    EXPECT_EQ(tight->verdict().footprint_bytes, 9 * 1024);
    EXPECT_EQ(tight->list().buckets.front(), (std::vector<std::size_t>{2}));
    std::size_t before = tight->list().buckets.size();
    for (Index kibibytes = 10; kibibytes <= 16; ++kibibytes) {
        const auto made = at(kibibytes);
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_LE(made->verdict().footprint_bytes, kibibytes * 1024);
        EXPECT_LE(made->list().buckets.size(), before);
        before = made->list().buckets.size();
    }
    EXPECT_EQ(before, 1U);
}

TEST(ListUnit, ALimitBelowTheFloorIsRefusedWithTheFloor) {
    const std::vector<Problem> problems = {grows(), stays(), shrinks(), grows(), shrinks()};
    const auto made =
        synthesize(std::span<const Problem>(problems), {}, {.footprint_bytes_max = 9 * 1024 - 1, .donate = true});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::infeasible);
    EXPECT_NE(made.error().message.find("no order needs less than 9.0 KiB (9216 bytes)"), std::string::npos)
        << made.error().message;
    const auto staged = synthesize(std::span<const Problem>(problems), {},
                                   {.footprint_bytes_max = 9 * 1024, .donate = true, .staging_bytes = 512});
    ASSERT_FALSE(staged);
    EXPECT_NE(staged.error().message.find("9.5 KiB"), std::string::npos) << staged.error().message;
}

// What lies between the steps of a sum does not fit beside the ends: the plan runs in pieces.
TEST(ListUnit, WorkspacesGiveWayToTheLimit) {
    const Problem reduces = moved("x=2", "f32[64,64]{U:x}", "x=2", "f32[64,64]");
    const std::vector<Problem> problems = {reduces, reduces};
    Options options;
    options.first_steps = {{StepKind::reduce_scatter, parse_layout(reduces.source.mesh, "f32[64@x,64]").value()}};
    const auto free = synthesize(std::span<const Problem>(problems), options);
    ASSERT_TRUE(free) << free.error().message;
    const Index ends = free->verdict().ends_bytes;
    ASSERT_EQ(free->verdict().footprint_bytes, ends + 8 * 1024);  // shared by the two
    const auto made = synthesize(std::span<const Problem>(problems), options, {.footprint_bytes_max = ends + 1024});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->verdict().footprint_bytes, ends + 1024);
    EXPECT_EQ(piece_count(made->list().executions[0]), 8);
    EXPECT_FALSE(synthesize(std::span<const Problem>(problems), options, {.footprint_bytes_max = ends + 64}));
}

TEST(ListUnit, AnArrayThatHasNoPlanIsNamed) {
    const std::vector<Problem> problems = {stays(), moved("x=2", "f32[4]", "x=2", "f32[5]")};
    const auto made = synthesize(std::span<const Problem>(problems));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message.substr(0, 9), "array 1: ");
}

}  // namespace
}  // namespace reshard
