#include "differential/checker.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace reshard::test {

namespace {

std::string program() {
    const char* const named = std::getenv("RESHARD_CHECKER");
    return named != nullptr && *named != '\0' ? named : RESHARD_CHECKER_BUILT;
}

std::optional<Index> number_after(const std::string& text, const std::string& name) {
    const auto at = text.find(" " + name + "=");
    if (at == std::string::npos) return std::nullopt;
    const char* const begin = text.c_str() + at + name.size() + 2;
    char* end = nullptr;
    const Index number = std::strtoll(begin, &end, 10);
    return end == begin ? std::nullopt : std::optional(number);
}

}  // namespace

Answer read_answer(const std::string& text) {
    Answer answer;
    answer.text = text;
    answer.accepted = text.starts_with("accept");
    answer.peak = number_after(text, "peak").value_or(0);
    answer.received = number_after(text, "received").value_or(0);
    answer.lower_bound = number_after(text, "lower_bound");
    answer.optimal = text.ends_with(" optimal");
    return answer;
}

std::string differ(const Plan& plan, const Verdict& verdict, const Answer& answer) {
    const Index size = size_of(plan.source.dtype);
    if (answer.peak * size != verdict.peak_bytes) return "peak " + std::to_string(verdict.peak_bytes / size);
    if (answer.received * size != verdict.received_bytes)
        return "received " + std::to_string(verdict.received_bytes / size);
    // No bound is proved if the target has summands. There C++ says 0, which is no bound.
    const Index bound = verdict.lower_bound_bytes / size;
    const bool none = !answer.lower_bound && summand_count(plan.target) > 1;
    if (!none && answer.lower_bound != bound) return "lower bound " + std::to_string(bound);
    if (answer.optimal != (answer.lower_bound && answer.received <= bound)) return "optimal";
    return "";
}

// Tests of one program may run side by side, so the file name contains the name of the test.
Checker::Checker(const std::string& name) : path_(::testing::TempDir() + "reshard_" + name), questions_(path_) {}

Checker::~Checker() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_ + ".out", ignored);
}

bool Checker::built() { return std::filesystem::exists(program()); }

std::vector<Answer> Checker::answers() {
    questions_.close();
    const std::string out = path_ + ".out";
    // It exits with 1 if it rejected a line. The answers say so too.
    const int status = std::system(("\"" + program() + "\" < \"" + path_ + "\" > \"" + out + "\"").c_str());
    EXPECT_NE(status, -1);
    std::vector<Answer> answers;
    std::ifstream in(out);
    for (std::string text; std::getline(in, text);) answers.push_back(read_answer(text));
    return answers;
}

}  // namespace reshard::test
