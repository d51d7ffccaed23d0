// The page that plans gives the answers of the tool.
#include "tool/browser/answers.hpp"

#include <gtest/gtest.h>

#include "report/picture.hpp"
#include "report/plan_table.hpp"
#include "reshard/text.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

Json asked(const Json& question) { return Json::parse(answer_question(question.dump())); }

Json rows_to_columns(const Json& options = Json::object()) {
    return {{"id", 7},
            {"mesh", "x=2,y=3"},
            {"source", "f32[12288@x,4096]"},
            {"target", "f32[12288@y,4096]"},
            {"options", options}};
}

TEST(Answers, AreThoseOfTheTool) {
    const Json answer = asked(rows_to_columns({{"vocabulary", "collectives"}}));
    const Mesh mesh = parse_mesh("x=2,y=3").value();
    const Options options{.vocabulary = Vocabulary::collectives};
    const Synthesis made = synthesize(parse_layout(mesh, "f32[12288@x,4096]").value(),
                                      parse_layout(mesh, "f32[12288@y,4096]").value(), options)
                               .value();
    EXPECT_EQ(answer["id"], 7);
    EXPECT_EQ(answer["table"], plan_table(made, options.machine, Page()));
    EXPECT_EQ(answer["picture"], svg_picture(made.plan(), options.machine).value());
    EXPECT_EQ(answer["plan"]["received_bytes_max_device"], made.verdict().received_bytes_max_device);
    EXPECT_FALSE(answer["plan"].contains("synthesis_us"));
}

// A device of f32[12288@x,4096] on x=2 has 96 MiB of 192 MiB.
TEST(Answers, SayWhatGatheringCosts) {
    const Json answer = asked(rows_to_columns());
    EXPECT_EQ(answer["gather"]["received_bytes"], 96 << 20);
    EXPECT_EQ(answer["gather"]["peak_bytes"], 192 << 20);
    EXPECT_NE(answer["gather"]["text"].get<std::string>().find("receives 96.0 MiB a device, holds 192.0 MiB"),
              std::string::npos)
        << answer["gather"];
    EXPECT_GT(answer["gather"]["picoseconds"], answer["plan"]["picoseconds_estimate"]);
    EXPECT_FALSE(asked(rows_to_columns({{"peak_bytes_max", "100MiB"}})).contains("gather"));
}

TEST(Answers, HaveTheLineToWrite) {
    const Json lines = asked(rows_to_columns())["lines"];
    EXPECT_EQ(lines["jax"], "x = reshard.jax.reshard(x, P('y', None))");
    EXPECT_EQ(lines["torch"], "x = reshard.torch.redistribute(x, (Replicate(), Shard(dim=0)))");
    // A part of an axis has no name in either framework, and a line names no second mesh.
    Json question = {{"mesh", "x=4"}, {"source", "f32[8@x]"}, {"target", "f32[8@x:(2)2]"}};
    EXPECT_EQ(asked(question)["lines"], Json::object());
    question = {{"mesh", "x=4"}, {"target_mesh", "y=2"}, {"source", "f32[8@x]"}, {"target", "f32[8@y]"}};
    EXPECT_EQ(asked(question)["lines"], Json::object());
}

TEST(Answers, RecognizeTheNotation) {
    const Json own = asked({{"mesh", "x=2,y=4"}, {"source", "f32[16@x,8@y]"}, {"target", "f32[16,8@(x,y)]"}});
    const std::vector<std::pair<const char*, const char*>> texts = {
        {"P('x', 'y')", "P(None, ('x', 'y'))"},
        {"PartitionSpec('x', 'y')", "PartitionSpec(None, ('x', 'y'))"},
        {R"(#sdy.sharding<mesh<["x"=2, "y"=4]>, [{"x"}, {"y"}]>)",
         R"(#sdy.sharding<mesh<["x"=2, "y"=4]>, [{}, {"x", "y"}]>)"},
        {"{mesh['x'=2,'y'=4], [{'x'}, {'y'}]}", "{mesh['x'=2,'y'=4], [{}, {'x', 'y'}]}"},
        {"  (Shard(0), Shard(1))", "(Shard(1), Shard(1))"},
        {"Spec(S(0)S(1) on (16, 8))", "Spec(S(1)S(1) on (16, 8))"}};
    for (const auto& [source, target] : texts) {
        const bool has_mesh = std::string_view(source).find("mesh") != std::string_view::npos;
        Json question = {
            {"source", source}, {"target", target}, {"array", "f32[16,8]"}, {"mesh", has_mesh ? "" : "x=2,y=4"}};
        EXPECT_EQ(asked(question)["table"], own["table"]) << source << asked(question);
    }
}

TEST(Answers, SayWhatIsWrong) {
    EXPECT_EQ(Json::parse(answer_question("{"))["error"]["code"], "syntax");
    EXPECT_EQ(Json::parse(answer_question(""))["error"]["code"], "syntax");
    const Json wrong = asked({{"id", "a"}, {"mesh", "x=2"}, {"source", "f32[8@z]"}, {"target", "f32[8]"}});
    EXPECT_EQ(wrong["id"], "a");
    EXPECT_NE(wrong["error"]["message"].get<std::string>().find("source: "), std::string::npos) << wrong;
    EXPECT_EQ(asked(rows_to_columns({{"peak_bytes_max", "1MiB"}}))["error"]["code"], "infeasible");
}

TEST(Answers, ExplainALog) {
    const Json answer = Json::parse(answer_log(
        "step 1\n[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
        "{mesh['x'=2,'y'=4], [{}, {'x'}, {'y'}]} to {mesh['x'=2,'y'=4], [{'x', 'y'}, {}, {}]} efficiently for "
        "HLO operation %copy = f32[64,32,16]{2,1,0} copy(%dot). As the last resort\nstep 2"));
    EXPECT_NE(answer["text"].get<std::string>().find("saves 784.0 KiB (8x)"), std::string::npos) << answer;
    ASSERT_EQ(answer["rows"].size(), 1U);
    const Json& row = answer["rows"][0];
    const Json again = asked({{"mesh", row["mesh"]},
                              {"source", row["source"]},
                              {"target", row["target"]},
                              {"options", {{"objective", "bytes"}, {"vocabulary", "collectives"}}}});
    EXPECT_EQ(again["plan"]["received_bytes_max_device"], row["bytes"]);
    EXPECT_EQ(Json::parse(answer_log("nothing of this kind"))["rows"], Json::array());
}

}  // namespace
}  // namespace reshard::cli
