// The same problems through the tool: a process gives the same answers as the functions behind it.
#include <gtest/gtest.h>

#include <sstream>

#include <fmt/format.h>

#include "meaning/draft.hpp"
#include "meaning/program.hpp"
#include "support/property.hpp"
#include "tool/console/exit.hpp"
#include "tool/request/json.hpp"

namespace reshard::test {
namespace {

using cli::Json;

/// The answer that the tool must give.
struct Expected {
    Json json;
    int code = 0;
};

Expected expected_of(const cli::Question& question) {
    const auto asked = cli::understand(question);
    if (!asked) return {cli::error_json(nullptr, asked.error()), cli::exit_code(asked.error().code)};
    const auto made = synthesize(asked->problem, asked->options);
    if (!made) return {cli::error_json(nullptr, made.error()), cli::exit_code(made.error().code)};
    return {cli::plan_json(nullptr, *asked, *made, 0), cli::exit_ok};
}

/// Empty if `answer` has every field of `wanted` with an equal value. Times may differ.
std::string difference(const Json& wanted, const Json& answer) {
    for (const auto& [field, value] : wanted.items()) {
        if (field == "synthesis_us") continue;
        if (!answer.contains(field)) return field + " is missing";
        if (field != "steps") {
            if (answer[field] != value)
                return fmt::format("{} is {} instead of {}", field, answer[field].dump(), value.dump());
            continue;
        }
        if (answer[field].size() != value.size()) return "another number of steps";
        for (std::size_t i = 0; i < value.size(); ++i)
            if (auto inside = difference(value[i], answer[field][i]); !inside.empty()) return inside;
    }
    return "";
}

std::string objection_to_process(const cli::Question& question, const std::string& command) {
    const Expected wanted = expected_of(question);
    std::vector<std::string> arguments = arguments_of(question, command);
    arguments.emplace_back("--json");
    if (command == "run") arguments.insert(arguments.end(), {"--backend", "local"});
    const Ran ran = run_tool(arguments);
    const Json answer = Json::parse(ran.out, nullptr, false);
    if (ran.code != wanted.code) return fmt::format("it exits with {} instead of {}", ran.code, wanted.code);
    if (answer.is_discarded()) return "its answer is no JSON: " + ran.out;
    if (command == "run" && ran.code == 0 && answer["wrong"] != 0) return "wrong elements arrive";
    return difference(wanted.json, answer);
}

TEST(MeaningOfTheProgram, AProcessAnswersWhatItsFunctionsDo) {
    const std::uint64_t seed = drawn_seed() + 1'000'000'000;
    const std::array<std::string, 3> commands = {"plan", "explain", "run"};
    const auto processes = static_cast<std::uint64_t>(cases(300));
    for (std::uint64_t i = 0; i < processes; ++i) {
        const cli::Question question = question_of(draw(seed + i));
        const std::string& command = commands[i % commands.size()];
        ASSERT_EQ(objection_to_process(question, command), "") << command_line(question, command);
    }
}

TEST(MeaningOfTheProgram, ABatchAnswersWhatItsFunctionsDo) {
    const std::uint64_t seed = drawn_seed() + 2'000'000'000;
    std::vector<cli::Question> questions;
    std::string lines;
    for (int i = 0; i < cases(1700); ++i) {
        questions.push_back(question_of(draw(seed + static_cast<std::uint64_t>(i))));
        lines += problem_line(questions.back()) + "\n";
    }
    const Ran ran = run_tool({"plan", "--batch"}, lines);
    EXPECT_EQ(ran.code, cli::exit_wrong);  // some are infeasible
    std::istringstream answers(ran.out);
    for (const cli::Question& question : questions) {
        std::string answer;
        ASSERT_TRUE(std::getline(answers, answer)) << "the batch ends before " << command_line(question);
        ASSERT_EQ(difference(expected_of(question).json, Json::parse(answer)), "") << command_line(question);
    }
}

}  // namespace
}  // namespace reshard::test
