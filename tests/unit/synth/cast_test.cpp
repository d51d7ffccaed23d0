// Plans between two element types: the place of the cast, the rules of the judge, and the costs.
#include <gtest/gtest.h>

#include "reshard/planner/part_of_copy.hpp"
#include "reshard/planner/plan_cache.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "src/text/certificate.hpp"

namespace reshard {
namespace {

const Mesh mesh{{"x", 4}};

Layout at(const std::string& text) { return parse_layout(mesh, text).value(); }

Options casting() {
    Options options;
    options.cast = true;
    return options;
}

Result<Synthesis> made(const std::string& source, const std::string& target, const Options& options = casting()) {
    return synthesize(at(source), at(target), options);
}

std::string kinds(const Plan& plan) {
    std::string text;
    for (const Step& step : plan.steps) text += (text.empty() ? "" : " ") + std::string(name(step.kind));
    return text;
}

TEST(CastUnit, TheNarrowerTypeTravels) {
    EXPECT_EQ(kinds(made("f32[64@x,8]", "bf16[64,8@x]")->plan()), "cast all_to_all");
    EXPECT_EQ(kinds(made("bf16[64@x,8]", "f32[64,8@x]")->plan()), "all_to_all cast");
    EXPECT_EQ(made("f32[64@x,8]", "bf16[64,8@x]")->verdict().received_bytes, 64 * 8 / 4 / 4 * 3 * 2);
    EXPECT_EQ(made("bf16[64@x,8]", "f32[64,8@x]")->verdict().received_bytes, 64 * 8 / 4 / 4 * 3 * 2);
    EXPECT_TRUE(made("bf16[64@x,8]", "f32[64,8@x]")->optimal);
    EXPECT_EQ(kinds(made("f32[64@x]", "bf16[64@x]")->plan()), "cast");
    // A slice comes first: there is less to cast behind it.
    EXPECT_EQ(kinds(made("f32[64]", "bf16[64@x]")->plan()), "slice cast");
}

TEST(CastUnit, SumsAreReducedInTheWiderType) {
    EXPECT_EQ(kinds(made("f32[65536]{U:x}", "bf16[65536@x]")->plan()), "reduce_scatter cast");
    EXPECT_EQ(kinds(made("bf16[65536]{U:x}", "f32[65536@x]")->plan()), "cast reduce_scatter");
    EXPECT_EQ(made("f16[64]{U:x}", "bf16[64@x]").error().message,
              "sums of f16 do not become bf16: neither type holds all values of the other");
    EXPECT_EQ(made("f32[64]{U:x}", "bf16[64]{U:x}").error().message,
              "summands of f32 do not become summands of bf16: sums are reduced in the wider type");
    const Plan early{at("f32[64]{U:x}"),
                     at("bf16[64@x]"),
                     {{StepKind::cast, at("bf16[64]{U:x}")}, {StepKind::reduce_scatter, at("bf16[64@x]")}}};
    EXPECT_EQ(check(early).error().message, "step 2: reduces bf16, not the wider f32");
    const Plan late{at("bf16[64]{U:x}"),
                    at("f32[64@x]"),
                    {{StepKind::reduce_scatter, at("bf16[64@x]")}, {StepKind::cast, at("f32[64@x]")}}};
    EXPECT_EQ(check(late).error().message, "step 1: reduces bf16, not the wider f32");
}

TEST(CastUnit, AQuestionMustAskForIt) {
    EXPECT_EQ(made("f32[64@x]", "bf16[64]", {}).error().message,
              "element types differ: f32 and bf16; a move casts if the option cast is on");
    EXPECT_EQ(made("f32[64@x]", "bf16[64]", {}).error().code, Code::mismatch);
    EXPECT_EQ(made("i32[64@x]", "i16[64]").error().code, Code::unsupported);
    EXPECT_EQ(made("i32[64@x]", "f64[64]").error().code, Code::unsupported);
    EXPECT_TRUE(made("u16[64@x]", "i32[64]").has_value());
    Options options = casting();
    options.first_steps = {{StepKind::all_gather, at("f32[64]")}};
    EXPECT_EQ(made("f32[64@x]", "bf16[64]", options).error().code, Code::unsupported);
}

TEST(CastUnit, TheJudgeAcceptsOneCast) {
    const Plan none{at("f32[64@x]"), at("bf16[64@x]"), {}};
    EXPECT_EQ(check(none).error().message, "element types differ: f32 and bf16");
    const Plan twice{
        at("f64[64@x]"), at("bf16[64@x]"), {{StepKind::cast, at("f32[64@x]")}, {StepKind::cast, at("bf16[64@x]")}}};
    EXPECT_EQ(check(twice).error().message, "from f64 to bf16 with 2 casts");
}

TEST(CastUnit, ReshapesAndCachesAndCertificatesKnowCasts) {
    const auto reshaped = made("f32[64@x,8]", "bf16[512@x]");
    ASSERT_TRUE(reshaped) << reshaped.error().message;
    EXPECT_EQ(reshaped->verdict().received_bytes, 0);
    PlanCache cache;
    for (const char* target : {"bf16[64,8@x]", "f16[64,8@x]", "bf16[64,8@x]"}) {
        const auto cached = cache.synthesize({at("f32[64@x,8]"), at(target)}, casting());
        ASSERT_TRUE(cached) << cached.error().message;
        EXPECT_EQ(format(cached->plan().target), target);
        EXPECT_EQ(cached->plan().steps.back().layout.dtype, cached->plan().target.dtype);
    }
    EXPECT_EQ(cache.hits(), 1);
    const Plan plan = made("f32[64@x,8]", "bf16[64,8@x]")->plan();
    const Plan erased = notation::without_casts(plan);
    EXPECT_TRUE(check(erased).has_value());
    EXPECT_EQ(*notation::certificate(plan), *notation::certificate(erased));
    EXPECT_EQ(*parse_plan(format(plan)), plan);
    EXPECT_NE(fingerprint(plan), fingerprint(erased));
}

// The copy reads one type and writes the other, so nothing lies between them.
TEST(CastUnit, ACastNextToACopyIsPartOfIt) {
    const auto part_of_copy = [](const Plan& plan) {
        std::string marks;
        for (std::size_t i = 0; i < plan.steps.size(); ++i) marks += is_part_of_copy(plan, i) ? 'c' : '.';
        return marks;
    };
    EXPECT_EQ(part_of_copy(made("f32[64@x,8]", "bf16[64,8@x]")->plan()), "c.");
    EXPECT_EQ(part_of_copy(made("bf16[64@x,8]", "f32[64,8@x]")->plan()), ".c");
    EXPECT_EQ(part_of_copy(made("f32[64@x]", "bf16[64@x]")->plan()), ".");
    EXPECT_EQ(part_of_copy(made("f32[64]", "bf16[64@x]")->plan()), "..");
    EXPECT_EQ(part_of_copy(made("f32[65536]{U:x}", "bf16[65536@x]")->plan()), "..");
    // Beside a view the cast would be a pass of its own.
    const Synthesis reshaped = *made("f32[64@x,8]", "bf16[8,8,8@x]");
    EXPECT_EQ(reshaped.verdict().footprint_bytes, 64 * 8 / 4 * (4 + 2)) << format(reshaped.plan());
    // The estimate has one copy, as without the cast.
    const auto narrow = made("bf16[64@x,8]", "bf16[64,8@x]");
    EXPECT_EQ(made("f32[64@x,8]", "bf16[64,8@x]")->picoseconds, narrow->picoseconds);
    EXPECT_EQ(made("bf16[64@x,8]", "f32[64,8@x]")->picoseconds, narrow->picoseconds);
}

TEST(CastUnit, LimitsCountBothTypes) {
    const auto free = made("f32[64@x,8]", "bf16[64,8@x]");
    const Index ends = 64 * 8 / 4 * (4 + 2);
    EXPECT_EQ(free->verdict().footprint_bytes, ends);
    const auto summed = made("f32[65536]{U:x}", "bf16[65536@x]");  // the sum lies between
    EXPECT_EQ(summed->verdict().footprint_bytes, 65536 * 4 + 65536 / 4 * 2 + 65536 / 4 * 4);
    EXPECT_EQ(free->verdict().peak_bytes, 64 * 8 / 4 * 4);
    Options options = casting();
    options.limits.memory.footprint_bytes_max = free->verdict().footprint_bytes;
    EXPECT_TRUE(made("f32[64@x,8]", "bf16[64,8@x]", options).has_value());
    options.limits.memory.footprint_bytes_max = ends - 1;
    EXPECT_EQ(made("f32[64@x,8]", "bf16[64,8@x]", options).error().code, Code::infeasible);
}

TEST(CastUnit, TranspositionsAreLayouts) {
    const std::vector<Index> order = {2, 0, 1};
    EXPECT_EQ(format(*permuted(at("f32[2,12@x,5]"), order)), "f32[5,2,12@x]");
    EXPECT_EQ(*permuted(at("f32[2,12@x,5]"), {}), at("f32[2,12@x,5]"));
    EXPECT_EQ(permuted(Storage{7, {60, 5, 1}}, order), (Storage{7, {1, 60, 5}}));
    for (const std::vector<Index>& wrong : {std::vector<Index>{0, 1}, {0, 1, 1}, {0, 1, 3}, {-1, 0, 1}})
        EXPECT_EQ(permuted(at("f32[2,12@x,5]"), wrong).error().code, Code::mismatch);
}

}  // namespace
}  // namespace reshard
