// Adjoints of plans: the kinds of their steps, and the inner products that define them.
#include "reshard/planner/adjoint.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "reshard/planner/simulate.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

Layout at(const std::string& text) { return parse_layout(mesh, text).value(); }

std::vector<StepKind> kinds(const Plan& plan) {
    std::vector<StepKind> all;
    for (const Step& step : plan.steps) all.push_back(step.kind);
    return all;
}

Plan one_step(const char* from, StepKind kind, const char* to) { return {at(from), at(to), {{kind, at(to)}}}; }

TEST(Adjoint, EachKindHasATwin) {
    const auto back = [](const char* from, StepKind kind, const char* to) {
        const Plan plan = one_step(from, kind, to);
        EXPECT_TRUE(judge(plan, AsSteps{})) << from << " to " << to;
        const auto made = adjoint(plan);
        EXPECT_TRUE(made) << made.error().message;
        EXPECT_TRUE(judge(made.value(), AsSteps{}));
        return kinds(made.value());
    };
    using Kinds = std::vector<StepKind>;
    EXPECT_EQ(back("f32[6@x]", StepKind::all_gather, "f32[6]"), Kinds{StepKind::reduce_scatter});
    EXPECT_EQ(back("f32[6]{U:x}", StepKind::reduce_scatter, "f32[6@x]"), Kinds{StepKind::all_gather});
    EXPECT_EQ(back("f32[6]", StepKind::slice, "f32[6@x]"), Kinds{StepKind::zero_fill});
    EXPECT_EQ(back("f32[6@x]", StepKind::zero_fill, "f32[6]{U:x}"), Kinds{StepKind::slice});
    EXPECT_EQ(back("f32[6]", StepKind::zero_fill, "f32[6]{U:x}"), Kinds{StepKind::zero_fill});
    EXPECT_EQ(back("f32[6]{U:x}", StepKind::all_reduce, "f32[6]"), Kinds{StepKind::all_reduce});
    EXPECT_EQ(back("f32[6@x,6]", StepKind::all_to_all, "f32[6,6@x]"), Kinds{StepKind::all_to_all});
    EXPECT_EQ(back("f32[6@(x,y)]", StepKind::permute, "f32[6@(y,x)]"), Kinds{StepKind::permute});
    EXPECT_EQ(back("f32[6@(x,y)]", StepKind::exchange, "f32[6@(y,x)]"), Kinds{StepKind::exchange});
    EXPECT_EQ(back("f32[6@x]", StepKind::exchange, "f32[6@y]"),
              (Kinds{StepKind::all_reduce, StepKind::exchange, StepKind::zero_fill}));
}

TEST(Adjoint, TheDualOfTheDualIsTheLayout) {
    for (const char* text : {"f32[6@x,4]", "f32[6,4]{U:(x,y)}", "f32[6@y,4@x]", "f32[7@x]{U:y}", "f32[4]"})
        EXPECT_TRUE(equivalent(dual(dual(at(text)).value()).value(), at(text))) << text;
    EXPECT_EQ(format(dual(at("f32[6@x]")).value()), "f32[6@x]{U:y}");
}

TEST(Adjoint, WhatHasNoSumsHasNoAdjoint) {
    EXPECT_EQ(dual(at("f32[6]{max:x}")).error().code, Code::unsupported);
    EXPECT_FALSE(dual(at("f8_e4m3fn[6@x]")));
}

std::int64_t product(const Tiles& a, const Tiles& b) {
    std::uint64_t sum = 0;
    for (std::size_t device = 0; device < a.size(); ++device) {
        EXPECT_EQ(a[device].size(), b[device].size());
        for (std::size_t i = 0; i < a[device].size(); ++i)
            sum += static_cast<std::uint64_t>(a[device][i]) * static_cast<std::uint64_t>(b[device][i]);
    }
    return static_cast<std::int64_t>(sum);
}

// <A x, y> = <x, A* y> in wrapping integers, for planned moves between all pairs of these layouts.
TEST(Adjoint, InnerProductsAreEqual) {
    const std::vector<std::string> layouts = {
        "f32[6@x,6]",     "f32[6,6@x]",    "f32[6,6]",        "f32[6@y,6@x]",         "f32[6@(x,y),6]",
        "f32[6@(y,x),6]", "f32[6,6]{U:x}", "f32[6@y,6]{U:x}", "f32[6@x[balanced],6]", "f32[6,6]{U:(x,y)}"};
    std::mt19937_64 random(5);
    int planned = 0;
    for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all})
        for (const std::string& from : layouts)
            for (const std::string& to : layouts) {
                const auto made = synthesize(at(from), at(to), {.vocabulary = vocabulary});
                if (!made) continue;
                ++planned;
                SCOPED_TRACE(from + " to " + to);
                const Plan& plan = made->plan();
                const auto back = adjoint(plan);
                ASSERT_TRUE(back) << back.error().message;
                const auto judged = judge(*back, AsSteps{});
                ASSERT_TRUE(judged) << judged.error().message;
                std::vector<std::int64_t> x(36), y(36);
                for (auto* const array : {&x, &y})
                    for (std::int64_t& one : *array) one = static_cast<std::int64_t>(random() >> 20);
                const Tiles source = distribute(plan.source, x).value();
                const Tiles gradient = distribute(back->source, y).value();
                EXPECT_EQ(product(simulate(plan, source).value(), gradient),
                          product(source, simulate(*back, gradient).value()));
            }
    EXPECT_GT(planned, 150);
}

}  // namespace
}  // namespace reshard
