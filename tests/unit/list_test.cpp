// Many arrays: the judge's verdict on a list, and the search under a memory limit.
#include "reshard/planner/list.hpp"

#include <gtest/gtest.h>

#include "reshard/model/rows.hpp"
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
    EXPECT_EQ(check(list)->footprint_bytes, 4 * 1024);  // the target's devices hold the most
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

// Arrays that shrink go first, and arrays that grow go last. With enough memory they share buckets.
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

// The tiles between the steps of a sum do not fit beside the ends, so the plan runs in pieces.
TEST(ListUnit, WorkspacesGiveWayToTheLimit) {
    const Problem reduces = moved("x=2", "f32[64,64]{U:x}", "x=2", "f32[64,64]");
    const std::vector<Problem> problems = {reduces, reduces};
    Options options;
    options.first_steps = {{StepKind::reduce_scatter, parse_layout(reduces.source.mesh, "f32[64@x,64]").value()}};
    const auto free = synthesize(std::span<const Problem>(problems), options);
    ASSERT_TRUE(free) << free.error().message;
    const Index ends = free->verdict().ends_bytes;
    ASSERT_EQ(free->verdict().footprint_bytes, ends + 8 * 1024);  // both share it
    const auto made = synthesize(std::span<const Problem>(problems), options, {.footprint_bytes_max = ends + 1024});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->verdict().footprint_bytes, ends + 1024);
    EXPECT_EQ(piece_count(made->list().executions[0]), 8);
    EXPECT_FALSE(synthesize(std::span<const Problem>(problems), options, {.footprint_bytes_max = ends + 64}));
}

// A plan for `rows` rows of 8 floats. On the way half of its source lies in the workspace.
Plan there_and_back(Index rows) {
    const auto through = [&](const char* dim) { return std::string("f32[") + dim + "]"; };
    const std::string n = std::to_string(rows);
    const std::string by_rows = through((n + "@x,8").c_str());
    const std::string by_columns = through((n + ",8@x").c_str());
    return *parse_plan("mesh x=2\nsource " + by_rows + "\nall_to_all " + by_columns + "\nall_to_all " + by_rows +
                       "\nall_to_all " + by_columns + "\ntarget " + by_columns + "\n");
}

constexpr Capabilities between_nodes{.steps_overlap = true};

TEST(ListUnit, ArraysThatRunTogetherHaveAPartOfTheWorkspaceEach) {
    // Tiles of 96, 128 and 256 bytes. Each plan has one tile in the workspace, and parts begin at whole cache lines.
    ListPlan list = in_one_bucket({there_and_back(6), there_and_back(8), there_and_back(16)});
    const Index ends = check(list)->ends_bytes;
    EXPECT_EQ(check(list)->footprint_bytes, ends + 256);
    const std::uint64_t one_by_one = fingerprint(list);
    list.together = {{0, 1}};
    EXPECT_EQ(check(list)->footprint_bytes, ends + 256);
    list.together = {{1, 2}};
    EXPECT_EQ(check(list)->footprint_bytes, ends + 128 + 256);
    list.together = {{0, 1, 2}};
    EXPECT_EQ(check(list)->footprint_bytes, ends + 128 + 128 + 256);
    EXPECT_NE(fingerprint(list), one_by_one);
    EXPECT_FALSE(check(list, {.footprint_bytes_max = ends + 511}));
    EXPECT_TRUE(check(list, {.footprint_bytes_max = ends + 512}));
}

TEST(ListUnit, ArraysRunTogetherWhereMemoryAllows) {
    const auto chosen = [](const std::vector<Plan>& plans, const MemoryPolicy& memory,
                           const Capabilities& capabilities = between_nodes) {
        return choose_executions(in_one_bucket(plans), capabilities, memory).together;
    };
    const std::vector<Plan> small(5, there_and_back(8));
    EXPECT_EQ(chosen(small, {}), (Buckets{{0, 1, 2, 3, 4}}));
    EXPECT_EQ(chosen(small, {}, {}), Buckets());
    EXPECT_EQ(chosen({small.front()}, {}), Buckets());
    const Index ends = check(in_one_bucket(small))->ends_bytes;
    // If no staging size is given, staging gets whatever the limit leaves.
    EXPECT_EQ(chosen(small, {.footprint_bytes_max = ends + 4096}), Buckets());
    EXPECT_EQ(chosen(small, {.footprint_bytes_max = ends + 4096, .staging_bytes = 1024}), (Buckets{{0, 1, 2, 3, 4}}));
    EXPECT_EQ(chosen(small, {.footprint_bytes_max = ends + 1024 + 2 * 128, .staging_bytes = 1024}),
              (Buckets{{0, 1}, {2, 3}}));
    EXPECT_EQ(chosen(small, {.footprint_bytes_max = ends + 1024 + 255, .staging_bytes = 1024}), Buckets());
    // Plans that fit into the workspace of the largest plan need no more than it does.
    std::vector<Plan> mixed = small;
    mixed.push_back(there_and_back(16));
    EXPECT_EQ(chosen(mixed, {.footprint_bytes_max = ends + 4096}), (Buckets{{0, 1}, {2, 3}}));
    // With no limit they share 16 MiB, or the workspace of the largest plan if that is more.
    const Index rows = (Index{1} << 20) / 16 * 12;  // 12 MiB a tile
    EXPECT_EQ(chosen({small[0], there_and_back(rows), small[1], small[2], there_and_back(rows)}, {}),
              (Buckets{{0, 1, 2, 3}}));
    EXPECT_EQ(chosen({there_and_back(4 * rows), there_and_back(rows), there_and_back(rows)}, {}), (Buckets{{1, 2}}));
}

TEST(ListUnit, WhatCannotRunTogetherIsRefused) {
    ListPlan list = in_one_bucket(std::vector<Plan>(4, there_and_back(8)));
    list.buckets = {{0, 1, 2}, {3}};
    const auto refused = [&](Buckets together, std::string_view why) {
        list.together = std::move(together);
        const auto verdict = check(list);
        ASSERT_FALSE(verdict) << why;
        EXPECT_EQ(verdict.error().code, Code::plan);
        EXPECT_NE(verdict.error().message.find(why), std::string::npos) << verdict.error().message;
    };
    refused({{0}}, "1 arrays run together");
    refused({{0, 4}}, "array 4, of 4");
    refused({{0, 1}, {1, 2}}, "array 1 runs together with others twice");
    refused({{2, 3}}, "arrays 2 and 3 run together but are of two buckets");
    list.executions = {AsSteps{}, AsOneExchange{}, AsSteps{}, AsSteps{}};
    refused({{0, 1}}, "array 1 runs step by step together with others, but not as steps");
    list.together = {{2, 0}};
    EXPECT_TRUE(check(list));
}

// Sums are added up one array after another. A plan that needs no workspace runs with any other.
TEST(ListUnit, SumsRunByThemselves) {
    const Problem reduces = moved("x=2", "f32[64,64]{U:x}", "x=2", "f32[64,64]");
    Options options;
    options.capabilities = between_nodes;
    options.first_steps = {{StepKind::reduce_scatter, parse_layout(reduces.source.mesh, "f32[64@x,64]").value()}};
    const std::vector<Problem> problems = {reduces, reduces};
    const auto sums = synthesize(std::span<const Problem>(problems), options);
    ASSERT_TRUE(sums) << sums.error().message;
    EXPECT_TRUE(sums->list().together.empty());
    const std::vector<Problem> moves = {stays(), stays()};
    Options plain;
    plain.capabilities = between_nodes;
    const auto direct = synthesize(std::span<const Problem>(moves), plain);
    ASSERT_TRUE(direct) << direct.error().message;
    EXPECT_TRUE(direct->list().together.empty());
}

// Matrices that rows of `devices` devices share. Each goes to one of these devices, its owner.
std::vector<Problem> to_owners(Index devices, Index matrices, const std::string& matrix = "64") {
    std::vector<Problem> problems;
    const std::string all = "x=" + std::to_string(devices);
    for (Index i = 0; i < matrices; ++i)
        problems.push_back(moved(all, "f32[" + std::to_string(8 * devices) + "@x," + matrix + "]",
                                 "o=1[" + std::to_string(i % devices) + "]",
                                 "f32[" + std::to_string(8 * devices) + "," + matrix + "]"));
    return problems;
}

TEST(ListUnit, EightMatricesToEightOwnersAreOneMatrixADevice) {
    const std::vector<Problem> problems = to_owners(8, 8);
    const auto made = synthesize(std::span<const Problem>(problems));
    ASSERT_TRUE(made) << made.error().message;
    const RowSchedule rows = RowSchedule::make(problems).value();
    Index received = 0, sent = 0;
    for (Index rank = 0; rank < rows.rank_count(); ++rank)
        for (const RowSide side : {RowSide::send, RowSide::receive}) {
            Index bytes = 0;
            for (const Row& row : rows.rows(rank, side)) bytes += row.peer == rank ? 0 : row.run_bytes * row.runs;
            Index& most = side == RowSide::send ? sent : received;
            most = std::max(most, bytes);
        }
    EXPECT_EQ(received, 7 * 8 * 64 * 4);
    const ListVerdict& verdict = made->verdict();
    EXPECT_EQ(verdict.load, (ListLoad{received, sent, 7, true, true}));
    EXPECT_EQ(verdict.bucket_loads, std::vector<ListLoad>{verdict.load});
    EXPECT_EQ(verdict.lower_bound_bytes, received);
    // Matrices are sent and received at once. The list takes no longer than one matrix in a row of devices, and far
    // less than all matrices one by one.
    Index sum = 0;
    for (const Synthesis& one : made->arrays) sum += one.picoseconds;
    EXPECT_GE(made->picoseconds, made->arrays[0].picoseconds);
    EXPECT_LT(2 * made->picoseconds, sum);
}

TEST(ListUnit, ThousandsOfMatricesOnThousandsOfDevices) {
    const std::vector<Problem> problems = to_owners(1024, 2048, "1");
    std::vector<Plan> plans;
    for (const Problem& problem : problems)
        plans.push_back({problem.source, problem.target, {{StepKind::exchange, problem.target}}});
    const auto judged = judge(in_one_bucket(plans));
    ASSERT_TRUE(judged) << judged.error().message;
    const ListLoad& load = judged->verdict().load;
    EXPECT_EQ(load.received_bytes, 2 * 1023 * 8 * 4);  // each owner has two matrices
    EXPECT_EQ(load.sent_bytes, (2048 - 2) * 8 * 4);    // to all owners but itself
    EXPECT_TRUE(load.received_exact && load.sent_exact);
    EXPECT_EQ(judged->verdict().lower_bound_bytes, load.received_bytes);
    EXPECT_EQ(list_picoseconds(*judged, laptop()), list_picoseconds(*judged, laptop()));
}

// With too many devices to enumerate, closed forms are exact. Any other figure is a bound and says so.
TEST(ListUnit, OfVeryManyDevicesABoundSaysThatItIsOne) {
    const Index devices = Index{1} << 20;
    const Problem even = moved("x=1024,y=1024", "f32[1024@x,1024]", "x=1024,y=1024", "f32[1024,1024]");
    const Problem back = moved("x=1024,y=1024", "f32[1024,1024@y]", "x=1024,y=1024", "f32[1024,1024]");
    const std::vector<Problem> gathers = {even, even, back};
    const auto closed = synthesize(std::span<const Problem>(gathers));
    ASSERT_TRUE(closed) << closed.error().message;
    Index sum = 0;
    for (const Verdict& one : closed->verdict().plans) sum += one.received_bytes_max_device;
    EXPECT_EQ(closed->verdict().load.received_bytes, sum);
    EXPECT_TRUE(closed->verdict().load.received_exact);
    EXPECT_EQ(closed->verdict().lower_bound_bytes, 3 * 1023 * 1024 * 4);
    EXPECT_EQ(device_count(even.source), devices);
    // The last tile is short, so its device receives the most, for both arrays.
    const Problem uneven = moved("x=100000", "f32[150001@x]", "x=100000", "f32[150001]");
    const std::vector<Problem> two = {uneven, uneven};
    const auto bound = synthesize(std::span<const Problem>(two));
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_FALSE(bound->verdict().load.received_exact);
    EXPECT_GE(bound->verdict().load.received_bytes, 2 * 150001 * 4);
    EXPECT_LE(bound->verdict().load.received_bytes, 2 * bound->verdict().plans[0].received_bytes);
    EXPECT_EQ(bound->verdict().lower_bound_bytes, 2 * bound->verdict().plans[0].lower_bound_bytes);
}

TEST(ListUnit, AnArrayThatHasNoPlanIsNamed) {
    const std::vector<Problem> problems = {stays(), moved("x=2", "f32[4]", "x=2", "f32[5]")};
    const auto made = synthesize(std::span<const Problem>(problems));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message.substr(0, 9), "array 1: ");
}

}  // namespace
}  // namespace reshard
